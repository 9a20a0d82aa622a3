'use strict';

const { builtin } = require('./builtin.js');

const { fileURLToPath } = builtin('node:url');

const { InvalidError } = require('./errors.js');

/** Returns options as JSON: URLs as paths, and no number that JSON does not have, which would become `null`. */
function optionsJson(options) {
  return JSON.stringify(options, function (key, value) {
    // `toJSON` has already made a text of a URL.
    if (this[key] instanceof URL) return fileURLToPath(this[key]);
    if (typeof value === 'number' && !Number.isFinite(value)) throw new InvalidError(`${key} must not be ${value}`, { kind: 'bad-options' });
    return value;
  });
}

/** Returns the options that have a value; others are those by default. */
function present(options) {
  return Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined && value !== null));
}

module.exports = { optionsJson, present };
