'use strict';

// The commands `replay`, `resume`, `tail`, `search`, `usage`, `verify`, `repair` and `export` as functions, and `redact`. Records
// are those that the commands print with `--json`; docs/cli.md describes them.

const { Records, every } = require('./records.js');
const { present } = require('./options.js');

/** Where many functions look: sessions, files and folders. */
function places(options) {
  const { in: given, ...others } = options ?? {};
  return { in: Array.isArray(given) ? given : [given ?? []].flat(), ...others };
}

function entries(session, options) {
  return new Records('entries', { ...options, session });
}

async function request(session, options) {
  return (await every('request', { ...options, session }))[0];
}

function follow(session, given) {
  const { start, ...options } = given ?? {};
  return new Records('follow', { ...options, session, from: start });
}

function watch(given) {
  const { start, ...options } = given ?? {};
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

async function exportSession(session, out, options) {
  return (await every('export', { format: 'html', ...present(options), session, out }))[0];
}

async function redact(text, options) {
  return (await every('redact', { ...options, text }))[0];
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
  redact,
  listArchived,
};
