'use strict';

// The commands `replay`, `resume`, `tail`, `search`, `usage`, `verify`, `repair` and `export` as functions. Records
// are those that the commands print with `--json`; docs/cli.md describes them.

const { Records, every } = require('./records.js');

/** Where many functions look: sessions, files and folders. */
function places({ in: given = [], ...options } = {}) {
  return { in: Array.isArray(given) ? given : [given], ...options };
}

function entries(session, options) {
  return new Records('entries', { ...options, session });
}

async function request(session, options) {
  return (await every('request', { ...options, session }))[0];
}

function follow(session, { start, ...options } = {}) {
  return new Records('follow', { ...options, session, from: start });
}

function watch({ start, ...options } = {}) {
  return new Records('watch', { ...places(options), from: start });
}

function search(query, options) {
  return new Records('search', { ...places(options), query });
}

async function usage(options) {
  return every('usage', places(options));
}

async function verify(session, options) {
  return every('verify', { ...options, session });
}

async function repair(session, options) {
  return (await every('repair', { ...options, session }))[0];
}

async function exportSession(session, out, { format = 'html', ...options } = {}) {
  return (await every('export', { ...options, session, out, format }))[0];
}

async function listArchived(options) {
  return every('listArchived', { archive: true, ...options });
}

module.exports = {
  entries,
  request,
  follow,
  watch,
  search,
  usage,
  verify,
  repair,
  exportSession,
  listArchived,
};
