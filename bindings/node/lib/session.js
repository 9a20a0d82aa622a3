'use strict';

const native = require('./native.js');
const { errorOf } = require('./errors.js');

/** Returns the JSON of an entry; a text is JSON already, and written as it is. */
function text(entry) {
  if (typeof entry === 'string') return entry;
  if (entry instanceof Uint8Array) return Buffer.from(entry.buffer, entry.byteOffset, entry.length).toString('utf8');
  return JSON.stringify(entry);
}

function list(entries) {
  return Array.from(entries, text).join(',');
}

/** Returns the rest of a command that adds `{ user }`, `{ assistant }` or an entry. */
function added(entry) {
  const keys = entry !== null && typeof entry === 'object' && !ArrayBuffer.isView(entry) ? Object.keys(entry) : [];
  if (keys.length === 1 && typeof entry.user === 'string') return `"user":${JSON.stringify(entry.user)}}`;
  if (keys.length === 1 && keys[0] === 'assistant') return `"assistant":${text(entry.assistant)}}`;
  return `"entry":${text(entry)}}`;
}

function written(answer) {
  return JSON.parse(answer).entries;
}

async function opened(mode, session, options = {}) {
  try {
    return await native.open(JSON.stringify({ mode, session, ...options }));
  } catch (failure) {
    throw errorOf(failure);
  }
}

/** Assembles a message from the events of a streamed reply, wherever the stream is cut. */
class StreamReply {
  #native = new native.StreamReply();

  event(event) {
    return this.#native.event(typeof event === 'string' ? event : JSON.stringify(event));
  }

  push(bytes) {
    return this.#native.push(typeof bytes === 'string' ? Buffer.from(bytes) : bytes);
  }

  get isOver() {
    return this.#native.isOver;
  }

  result() {
    return JSON.parse(this.#native.json());
  }

  static nativeOf(reply) {
    return reply.#native;
  }
}

/**
 * A session that is open for writing. What `append` resolved survives the end of this process, whatever the cause;
 * `sync` and `close` make it survive a power cut. Calls run in their order; appends that wait together are one write.
 */
class Session {
  #native;
  #resumed;
  #restored;

  constructor(key, found) {
    if (key !== native) throw new TypeError('use Session.create, open, openOrCreate or resume');
    const about = JSON.parse(found.about);
    this.#native = found.session;
    this.#restored = about.restored ?? 0;
    const { request, added, forkedFrom } = about;
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
    return this.#native.path;
  }

  get sessionId() {
    return this.path.replace(/^.*[\\/]/, '').replace(/\.jsonl$/, '');
  }

  get resumed() {
    return this.#resumed;
  }

  get restored() {
    return this.#restored;
  }

  async #run(command) {
    try {
      return await this.#native.run(command);
    } catch (failure) {
      throw errorOf(failure);
    }
  }

  async #ask(command) {
    return JSON.parse(await this.#run(JSON.stringify(command)));
  }

  async append(entry) {
    return written(await this.#run(`{"op":"append",${added(entry)}`));
  }

  async appendAll(entries) {
    return written(await this.#run(`{"op":"appendAll","entries":[${list(entries)}]}`));
  }

  async appendReply(reply) {
    try {
      return written(await this.#native.appendReply(StreamReply.nativeOf(reply)));
    } catch (failure) {
      throw errorOf(failure);
    }
  }

  async queue(entry) {
    return JSON.parse(await this.#run(`{"op":"queue",${added(entry)}`)).uuid;
  }

  async record(messages) {
    return written(await this.#run(`{"op":"record","messages":[${list(messages)}]}`));
  }

  async compact(summary, { trigger = 'manual', preserved = [], preTokens = 0 } = {}) {
    const answer = await this.#ask({ op: 'compact', summary, trigger, preserved, preTokens });
    const [boundary, summaryEntry] = answer.entries;
    return { boundary, summary: summaryEntry };
  }

  async rewind(to) {
    await this.#ask({ op: 'rewind', to: to ?? null });
  }

  async tombstone(uuid) {
    await this.#ask({ op: 'tombstone', uuid });
  }

  async fork(options = {}) {
    return (await this.#ask({ op: 'fork', ...options })).path;
  }

  async setTitle(title) {
    await this.#ask({ op: 'title', title });
  }

  async setTag(tag) {
    await this.#ask({ op: 'tag', tag });
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

  async usage() {
    return (await this.#ask({ op: 'usage' })).models;
  }

  async leaf() {
    return (await this.#ask({ op: 'leaf' })).uuid;
  }

  async agent(options) {
    try {
      return new Session(native, await this.#native.agent(JSON.stringify(options)));
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
