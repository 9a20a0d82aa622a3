'use strict';

const { builtin } = require('./builtin.js');

const { types } = builtin('node:util');

const native = require('./native.js');
const { InvalidError, errorOf } = require('./errors.js');
const { hold, release } = require('./keep.js');
const { optionsJson, present } = require('./options.js');

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const HALF_OF_A_PAIR = /\p{Surrogate}/u;

function isWellFormed(text) {
  return text.isWellFormed?.() ?? !HALF_OF_A_PAIR.test(text);
}

function isBytes(value) {
  return ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value);
}

function invalid(message) {
  return new InvalidError(message, { kind: 'invalid-entry' });
}

function decoded(bytes) {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw invalid('the entry is not UTF-8');
  }
}

/** Returns an entry in a command. What is JSON already is a string there, so that it cannot end the command. */
function json(entry) {
  if (isBytes(entry)) return JSON.stringify(decoded(entry));
  if (typeof entry === 'string' && !isWellFormed(entry)) throw invalid('the entry has half of a surrogate pair');
  const text = JSON.stringify(entry);
  if (text === undefined) throw new TypeError(`an entry is an object or its JSON, not ${typeof entry}`);
  return text;
}

function list(entries) {
  if (typeof entries === 'string' || isBytes(entries)) throw new TypeError('a list of entries is needed, not one entry');
  const texts = [];
  for (const entry of entries) texts.push(json(entry));
  return texts.join(',');
}

/** Returns the rest of a command that adds `{ user }`, `{ assistant }`, `{ client }` or an entry. */
function added(entry) {
  const isNamed = typeof entry === 'object' && entry !== null && entry.type === undefined;
  if (!isNamed || (entry.user === undefined && entry.assistant === undefined && entry.client === undefined)) {
    return `"entry":${json(entry)}}`;
  }
  const { user, assistant, client, ...others } = entry;
  const [other] = Object.keys(others);
  if (other !== undefined) throw new TypeError(`beside user, assistant or client there must be no ${other}`);
  const fields = [];
  if (user !== undefined) fields.push(`"user":${JSON.stringify(user) ?? null}`);
  if (assistant !== undefined) fields.push(`"assistant":${json(assistant)}`);
  if (client !== undefined) fields.push(`"client":${JSON.stringify(client) ?? null}`);
  return `${fields.join(',')}}`;
}

/** Returns the rest of a command about a system prompt. */
function promptOf(sections, options) {
  const named = Object.entries(sections).map(([name, text]) => ({ name, text }));
  return { ...present(options), sections: named };
}

function written(answer) {
  return JSON.parse(answer).entries;
}

async function opened(mode, session, options) {
  const given = optionsJson({ ...present(options), mode, session: session ?? undefined });
  try {
    return await native.open(given);
  } catch (failure) {
    throw errorOf(failure);
  }
}

/** Assembles a message from the events of a streamed reply, wherever the stream is cut. */
class StreamReply {
  #native = new native.StreamReply();

  event(event) {
    return this.#native.event(typeof event === 'string' ? event : (JSON.stringify(event) ?? ''));
  }

  push(bytes) {
    if (typeof bytes === 'string') return this.#native.push(Buffer.from(bytes));
    if (ArrayBuffer.isView(bytes)) return this.#native.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    if (bytes instanceof ArrayBuffer) return this.#native.push(Buffer.from(bytes));
    throw new TypeError('push takes bytes or a string');
  }

  get isOver() {
    return this.#native.isOver;
  }

  result() {
    return JSON.parse(this.#native.json());
  }

  static nativeOf(reply) {
    if (!(reply instanceof StreamReply)) throw new TypeError('appendReply takes a StreamReply');
    return reply.#native;
  }
}

/** The commands of a session that have no answer yet. */
class Commands {
  #session;
  #waiting = new Map();
  #number = 0;

  constructor(opened) {
    // The addon keeps this function as long as the session: with a way from it to the session, neither would ever be freed.
    this.#session = opened.session(settleOf(this.#waiting));
  }

  get session() {
    return this.#session;
  }

  /** Returns a promise of the answer to a command. */
  run(command) {
    // An answer that is there at once must not come before those to earlier commands.
    const isFirst = this.#waiting.size === 0;
    return this.start((session, number) => (isFirst ? session.ask(number, command) : session.run(number, command)));
  }

  /** Returns a promise of the answer to what `start` starts under a number, and may return at once. */
  async start(start) {
    this.#number = (this.#number + 1) >>> 0;
    try {
      return start(this.#session, this.#number) ?? (await this.#answerTo(this.#number));
    } catch (failure) {
      // Made here, and not where the answer arrives, the error has the callers in its stack.
      throw errorOf(failure);
    }
  }

  #answerTo(number) {
    hold();
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject });
    });
  }
}

/** Returns the function that gets the answers to the commands that are waiting. */
function settleOf(waiting) {
  return (number, answer, failure) => {
    const { resolve, reject } = waiting.get(number);
    waiting.delete(number);
    release();
    if (failure === null || failure === undefined) resolve(answer);
    else reject({ message: failure });
  };
}

/**
 * A session that is open for writing. What `append` resolved survives the end of this process, whatever the cause;
 * `sync` and `close` make it survive a power cut. Calls run in their order; appends that wait together are one write.
 */
class Session {
  #commands;
  #resumed;
  #restored;
  #repair;
  #sessionId;

  constructor(key, found) {
    if (key !== native) throw new TypeError('use Session.create, open, openOrCreate or resume');
    const about = JSON.parse(found.about);
    this.#commands = new Commands(found);
    this.#restored = about.restored ?? 0;
    this.#repair = about.repair ?? null;
    const { request, added, forkedFrom, sessionId } = about;
    this.#sessionId = sessionId ?? null;
    this.#resumed = request && { request, added, forkedFrom };
  }

  static async create(path, options) {
    return new Session(native, await opened('create', path, options));
  }

  static async open(session, options) {
    return new Session(native, await opened('open', session, options));
  }

  static async openOrCreate(path, options) {
    return new Session(native, await opened('openOrCreate', path, options));
  }

  static async resume(session, options) {
    return new Session(native, await opened('resume', session, options));
  }

  get path() {
    return this.#commands.session.path;
  }

  get sessionId() {
    return this.#sessionId ?? this.path.replace(/^.*[\\/]/, '').replace(/\.jsonl$/, '');
  }

  get resumed() {
    return this.#resumed;
  }

  get repair() {
    return this.#repair;
  }

  get restored() {
    return this.#restored;
  }

  #run(command) {
    return this.#commands.run(command);
  }

  async #ask(command) {
    return JSON.parse(await this.#run(optionsJson(command)));
  }

  async append(entry) {
    return written(await this.#run(`{"op":"append",${added(entry)}`));
  }

  async appendAll(entries) {
    return written(await this.#run(`{"op":"appendAll","entries":[${list(entries)}]}`));
  }

  async appendReply(reply) {
    const received = StreamReply.nativeOf(reply);
    return written(await this.#commands.start((session, number) => session.appendReply(number, received)));
  }

  async appendToolResult(call, content, options) {
    const toolResult = { ...present(options), call, content };
    return (await this.#ask({ op: 'append', toolResult })).entries[0];
  }

  async queue(entry) {
    return JSON.parse(await this.#run(`{"op":"queue",${added(entry)}`)).uuid;
  }

  async record(messages) {
    const answer = await this.#run(`{"op":"record","messages":[${list(messages)}]}`);
    const { entries, skipped } = JSON.parse(answer);
    return Object.assign(entries, { skipped: skipped ?? [] });
  }

  async compact(summary, options) {
    const answer = await this.#ask({ trigger: 'manual', ...present(options), op: 'compact', summary });
    const [boundary, summaryEntry] = answer.entries;
    return { boundary, summary: summaryEntry };
  }

  async rewind(to) {
    await this.#ask({ op: 'rewind', to });
  }

  async tombstone(uuid) {
    await this.#ask({ op: 'tombstone', uuid });
  }

  async fork(options) {
    return (await this.#ask({ ...options, op: 'fork' })).path;
  }

  async setTitle(title) {
    await this.#ask({ op: 'title', title });
  }

  async setTag(tag) {
    await this.#ask({ op: 'tag', tag });
  }

  async setContext(context) {
    await this.#ask({ ...context, op: 'context' });
  }

  async recordPrompt(sections, options) {
    const { entries } = await this.#ask({ ...promptOf(sections, options), op: 'prompt' });
    return entries[0] ?? null;
  }

  async promptChanges(sections, options) {
    return (await this.#ask({ ...promptOf(sections, options), op: 'changes' })).changes ?? null;
  }

  async completeCalls(text) {
    return (await this.#ask({ op: 'completeCalls', text })).entries;
  }

  async count(counted) {
    return (await this.#ask({ ...counted, op: 'count' })).counters;
  }

  async counters() {
    return (await this.#ask({ op: 'counters' })).counters;
  }

  async state() {
    return (await this.#ask({ op: 'state' })).state;
  }

  async endTurn(prompt) {
    await this.#ask({ op: 'endTurn', prompt });
  }

  async request() {
    return (await this.#ask({ op: 'request' })).request;
  }

  async entries() {
    return (await this.#ask({ op: 'entries' })).list;
  }

  async story() {
    return (await this.#ask({ op: 'story' })).story;
  }

  async findEntry(name) {
    return (await this.#ask({ op: 'findEntry', name })).uuid;
  }

  async usage() {
    return (await this.#ask({ op: 'usage' })).models;
  }

  async leaf() {
    return (await this.#ask({ op: 'leaf' })).uuid;
  }

  async agent(options) {
    const given = optionsJson({ ...options });
    try {
      return new Session(native, await this.#commands.session.agent(given));
    } catch (failure) {
      throw errorOf(failure);
    }
  }

  async sync() {
    await this.#ask({ op: 'sync' });
  }

  async close() {
    await this.#ask({ op: 'close' });
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.close();
  }
}

module.exports = { Session, StreamReply };
