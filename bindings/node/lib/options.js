'use strict';

const { fileURLToPath } = require('node:url');

/** Returns options as JSON: URLs as paths, and no number that JSON does not have, which would become `null`. */
function optionsJson(options) {
  return JSON.stringify(options, function (key, value) {
    // `toJSON` has already made a text of a URL.
    if (this[key] instanceof URL) return fileURLToPath(this[key]);
    if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${key} must not be ${value}`);
    return value;
  });
}

module.exports = { optionsJson };
