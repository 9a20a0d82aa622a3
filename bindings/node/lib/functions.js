'use strict';

// The commands `replay`, `resume`, `tail`, `search`, `usage`, `verify`, `repair` and `export` as functions. Records
// are those that the commands print with `--json`; docs/cli.md describes them.

const { Records, every } = require('./records.js');

/** Where many functions look: sessions, files and folders. */
function places({ in: given = [], ...options } = {}) {
  return { in: Array.isArray(given) ? given : [given], ...options };
}

function entries(session, options) {
  return new Records('entries', { session, ...options });
}

async function request(session, options) {
  return (await every('request', { session, ...options }))[0];
}

function follow(session, { start, ...options } = {}) {
  return new Records('follow', { session, from: start, ...options });
}

function watch({ start, ...options } = {}) {
  return new Records('watch', { from: start, ...places(options) });
}

function search(query, options) {
  return new Records('search', { query, ...places(options) });
}

async function usage(options) {
  return every('usage', places(options));
}

async function verify(session, options) {
  return every('verify', { session, ...options });
}

async function repair(session, options) {
  return (await every('repair', { session, ...options }))[0];
}

async function exportSession(session, out, { format = 'html', ...options } = {}) {
  return (await every('export', { session, out, format, ...options }))[0];
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
