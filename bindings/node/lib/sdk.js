'use strict';

// The session functions of `@anthropic-ai/claude-agent-sdk`, under their names and with their types.

const { builtin } = require('./builtin.js');

const { existsSync } = builtin('node:fs');

const { InvalidError, NotFoundError } = require('./errors.js');
const { Records, every, parts } = require('./records.js');

/** Returns options as the native part names them; it refuses those that it does not know. */
function named(options) {
  const { dir, limit, offset, ...others } = options ?? {};
  const whole = { directory: dir, ...others };
  if (limit !== undefined) whole.limit = wholeNumber(limit);
  if (offset !== undefined) whole.offset = wholeNumber(offset);
  return whole;
}

/** Returns a number as the SDK takes it: no limit for what is not finite, and without its fraction. */
function wholeNumber(number) {
  if (typeof number !== 'number') return number;
  if (!Number.isFinite(number)) return undefined;
  return Math.trunc(Math.min(Math.max(number, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER));
}

/** Returns an id for the native part: what is not a text names no session. */
function idOf(id) {
  return typeof id === 'string' ? id : '';
}

async function listSessions(options) {
  return every('listSessions', named(options));
}

async function getSessionInfo(sessionId, options) {
  return (await every('getSessionInfo', { ...named(options), sessionId: idOf(sessionId) }))[0];
}

/** A message whose body is parsed when it is first used. */
class LazyMessage {
  #texts;
  #place;
  #message;
  #isRead = false;

  constructor(record, texts) {
    let marks;
    [
      this.type,
      this.uuid,
      this.parent_uuid,
      this.session_id,
      this.timestamp,
      this.parent_tool_use_id,
      this.parent_agent_id,
      marks,
      this.#place,
    ] = record;
    Object.assign(this, marks);
    this.#texts = texts;
  }

  /** The message of the API: role, content, and what else the client wrote; a system entry has none. */
  get message() {
    if (!this.#isRead && this.type !== 'system') {
      // From now on this message keeps its own text, and not those of all messages that were read with it.
      this.#texts = this.raw;
      this.#place = [0, this.#texts.length];
      this.#message = JSON.parse(this.#texts.toString('utf8'));
      this.#isRead = true;
    }
    return this.#message;
  }

  /** A copy of the JSON of the message as it is in the file. */
  get raw() {
    return Buffer.from(this.#texts.subarray(this.#place[0], this.#place[1]));
  }

  toJSON() {
    return { ...this, message: this.message };
  }
}

function lazyMessages(batch) {
  const [records, texts] = parts(batch);
  return records.map((record) => new LazyMessage(record, texts));
}

/** Reads whole messages, as plain objects. */
function messages(batch) {
  const [records, texts] = parts(batch);
  return records.map((record) => {
    const [type, uuid, parent_uuid, session_id, timestamp, parent_tool_use_id, parent_agent_id, marks] = record;
    const [start, end] = record[8];
    const message = {
      type,
      uuid,
      session_id,
      ...(type !== 'system' && { message: JSON.parse(texts.toString('utf8', start, end)) }),
      parent_tool_use_id,
      parent_agent_id,
      parent_uuid,
      ...(timestamp !== null && { timestamp }),
    };
    return marks === null ? message : { ...message, ...marks };
  });
}

async function getSessionMessages(sessionId, options) {
  return new Records('getSessionMessages', { ...named(options), sessionId: idOf(sessionId) }, messages).toArray();
}

function iterSessionMessages(sessionId, options) {
  return new Records('getSessionMessages', { ...named(options), sessionId: idOf(sessionId) }, lazyMessages);
}

async function listSubagents(sessionId, given) {
  const { limit, offset = 0, ...options } = given ?? {};
  const agents = await every('listSubagents', { ...named(options), sessionId: idOf(sessionId) });
  const start = Math.max(offset, 0);
  return agents.slice(start, limit > 0 ? start + limit : undefined);
}

async function getSubagentMessages(sessionId, agentId, options) {
  if (typeof agentId !== 'string' || agentId === '') return [];
  const given = { ...named(options), sessionId: idOf(sessionId), agentId };
  return new Records('getSubagentMessages', given, messages).toArray();
}

/** Runs a function that changes a session, with errors in the words of the SDK. */
async function change(name, sessionId, options, given, what = '') {
  try {
    return await every(name, { ...named(options), ...given, sessionId: idOf(sessionId) });
  } catch (error) {
    if (error instanceof NotFoundError) {
      let where = options?.dir ? ` in project directory for ${options.dir}` : '';
      if (error.path !== null && !existsSync(error.path)) where = ': no projects directory';
      error.message = `Session ${sessionId} not found${where}`;
    } else if (error instanceof InvalidError) {
      const words = {
        'not-an-id': `Invalid sessionId: ${sessionId}`,
        blank: `${what} must be non-empty${what === 'tag' ? ' (use null to clear)' : ''}`,
        'unknown-entry': `Message ${options?.upToMessageId} not found in session ${sessionId}`,
      };
      error.message = words[error.kind] ?? error.message;
    }
    throw error;
  }
}

async function renameSession(sessionId, title, options) {
  await change('renameSession', sessionId, options, { title }, 'title');
}

async function tagSession(sessionId, tag, options) {
  // Only `null` clears the tag: not a variable that happens to be undefined.
  if (typeof tag !== 'string' && tag !== null) throw new InvalidError('tag must be a string or null', { kind: 'bad-options' });
  await change('tagSession', sessionId, options, { tag }, 'tag');
}

async function archiveSession(sessionId, options) {
  await change('setArchived', sessionId, options, { archived: true });
}

async function unarchiveSession(sessionId, options) {
  await change('setArchived', sessionId, options, { archived: false });
}

async function deleteSession(sessionId, options) {
  await change('deleteSession', sessionId, options);
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

async function forkSession(sessionId, options) {
  const upToMessageId = options?.upToMessageId || undefined;
  if (upToMessageId && !UUID.test(upToMessageId)) {
    throw new InvalidError(`Invalid upToMessageId: ${upToMessageId}`, { kind: 'not-an-id' });
  }
  return (await change('forkSession', sessionId, { ...options, upToMessageId }))[0];
}

module.exports = {
  LazyMessage,
  listSessions,
  getSessionInfo,
  getSessionMessages,
  iterSessionMessages,
  listSubagents,
  getSubagentMessages,
  renameSession,
  tagSession,
  archiveSession,
  unarchiveSession,
  deleteSession,
  forkSession,
};
