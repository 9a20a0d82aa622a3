'use strict';

const native = require('./native.js');
const { InvalidError, TranscriptError, errorOf } = require('./errors.js');
const { hold, release } = require('./keep.js');
const { optionsJson } = require('./options.js');

/** Starts a function, whose batches `settle` gets; options that are undefined or null are those by default. */
function call(name, options, settle) {
  const given = { function: name };
  for (const [key, value] of Object.entries(options)) {
    if (key === 'function') throw new InvalidError('there is no option `function`', { kind: 'bad-options' });
    if (value !== undefined && value !== null) given[key] = value;
  }
  const json = optionsJson(given);
  try {
    return native.call(json, settle);
  } catch (failure) {
    throw errorOf(failure);
  }
}

/** Divides a batch into its records and the texts that they name by their places. */
function parts(batch) {
  const end = 4 + batch.readUInt32LE(0);
  return [JSON.parse(textOf(batch, 4, end)), batch.subarray(end)];
}

/** Returns a part of a batch as text, if a string can have it. */
function textOf(batch, start, end) {
  try {
    return batch.toString('utf8', start, end);
  } catch (cause) {
    const message = `a record has ${end - start} bytes, more than a string of JavaScript can have`;
    throw new TranscriptError(message, { kind: 'too-large' }, { cause });
  }
}

function readJson(batch) {
  return parts(batch)[0];
}

/** The batches of a function. */
class Batches {
  #records;
  // The addon keeps the function that gets the batches, which must not lead back to these.
  #due = { isHeld: false };
  #isRef = true;

  constructor(name, options) {
    this.#records = call(name, options, settleOf(this.#due));
  }

  /** Waits for the next batch, which is null after the last. */
  async next() {
    try {
      return await new Promise((resolve, reject) => {
        Object.assign(this.#due, { resolve, reject });
        if (this.#isRef) this.#hold();
        this.#records.next();
      });
    } catch (failure) {
      throw errorOf(failure);
    }
  }

  #hold() {
    this.#due.isHeld = true;
    hold();
  }

  ready() {
    return this.#records.ready();
  }

  close() {
    this.#records.close();
  }

  /** Chooses whether waiting for a batch keeps the event loop alive. */
  set isRef(isRef) {
    this.#isRef = isRef;
    const isDue = this.#due.resolve !== undefined;
    if (isRef && isDue && !this.#due.isHeld) this.#hold();
    if (!isRef && this.#due.isHeld) settled(this.#due);
  }
}

/** The event loop need not wait for this batch any more. */
function settled(due) {
  if (due.isHeld) release();
  due.isHeld = false;
}

/** Returns the function that gets the batches. */
function settleOf(due) {
  return (batch, failure) => {
    const { resolve, reject } = due;
    due.resolve = undefined;
    due.reject = undefined;
    settled(due);
    if (failure === null || failure === undefined) resolve(batch ?? null);
    else reject({ message: failure });
  };
}

/** Waits for all records. */
async function every(name, options) {
  const records = new Batches(name, options);
  const found = [];
  for (let batch; (batch = await records.next()) !== null; ) found.push(...readJson(batch));
  return found;
}

/**
 * Records that a function finds, as they are found. The function runs on another thread, at most 16 MiB
 * ahead; a follow has none while it waits. `return()`, the end of a `for await` loop, or aborting `signal` ends it.
 */
class Records {
  #records;
  #read;
  #batch = [];
  #at = 0;
  #done = false;
  #signal;
  #abort;
  #calls = 0;
  #last = Promise.resolve();

  constructor(name, { signal, ...options }, read = readJson) {
    signal?.throwIfAborted();
    this.#records = new Batches(name, options);
    this.#read = read;
    this.#signal = signal;
    this.#abort = () => this.#end();
    signal?.addEventListener('abort', this.#abort, { once: true });
  }

  #end() {
    this.#done = true;
    this.#batch = [];
    this.#at = 0;
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#records.close();
  }

  next() {
    if (this.#calls === 0 && this.#at < this.#batch.length) {
      this.#at += 1;
      return Promise.resolve({ value: this.#batch[this.#at - 1], done: false });
    }
    // Calls that are not awaited get their records in order.
    const last = this.#calls === 0 ? undefined : this.#last;
    let release;
    this.#last = new Promise((resolve) => (release = resolve));
    return this.#takeAfter(last, release);
  }

  async #takeAfter(last, release) {
    this.#calls += 1;
    try {
      if (last !== undefined) await last;
      return await this.#take();
    } catch (error) {
      // There are no more records after a failure.
      this.#end();
      throw error;
    } finally {
      this.#calls -= 1;
      release();
    }
  }

  async #take() {
    while (this.#at === this.#batch.length) {
      const batch = this.#done ? null : await this.#records.next();
      this.#signal?.throwIfAborted();
      if (batch === null || this.#done) {
        this.#end();
        return { value: undefined, done: true };
      }
      this.#batch = this.#read(batch);
      this.#at = 0;
    }
    return { value: this.#batch[this.#at++], done: false };
  }

  /** Waits until the function has started: what is written after that to the files that it follows is returned. */
  async ready() {
    await this.#records.ready();
    return this;
  }

  /** Lets the process end while it waits for records, as timers do. */
  unref() {
    this.#records.isRef = false;
    return this;
  }

  /** Keeps the process alive while it waits for records, as by default. */
  ref() {
    this.#records.isRef = true;
    return this;
  }

  async return(value) {
    this.#end();
    return { value, done: true };
  }

  close() {
    this.#end();
  }

  /** Waits for all records that are left. */
  async toArray() {
    const found = [];
    for await (const record of this) found.push(record);
    return found;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    this.#end();
  }
}

module.exports = { Records, every, parts, readJson };
