'use strict';

/** Anything that went wrong: `path` names the file, and nothing quotes the content of an entry. */
class TranscriptError extends Error {
  constructor(message, { kind = 'error', path = null, line = null, offset = null, retryable = false } = {}, options) {
    super(message, options);
    this.name = new.target.name;
    this.kind = kind;
    this.path = path;
    this.line = line;
    this.offset = offset;
    this.retryable = retryable;
  }
}

class NotFoundError extends TranscriptError {}
class ExistsError extends TranscriptError {}
class InvalidError extends TranscriptError {}
class BusyError extends TranscriptError {}
class NotResumableError extends TranscriptError {}
class ClosedError extends TranscriptError {}
class InternalError extends TranscriptError {}

const CLASSES = {
  TranscriptError,
  NotFoundError,
  ExistsError,
  InvalidError,
  BusyError,
  NotResumableError,
  ClosedError,
  InternalError,
};

/** Makes the error of a failure of the addon, whose message is JSON. */
function errorOf(failure) {
  let fields;
  try {
    fields = JSON.parse(failure.message);
  } catch {
    return failure;
  }
  const Class = CLASSES[`${fields.class}Error`] ?? TranscriptError;
  return new Class(fields.message, fields);
}

module.exports = { ...CLASSES, errorOf };
