'use strict';

// The operations as functions, written by `tools/bindings_api.py` from `docs/operations.json`.

const { Records, every } = require('./records.js');

function entries(session, options) {
  return new Records('entries', { ...options, session });
}

async function exportSession(session, out, options) {
  return (await every('export', { ...options, session, out }))[0];
}

function follow(session, options) {
  const { start, ...others } = options ?? {};
  return new Records('follow', { ...others, session, from: start });
}

async function fork(session, options) {
  return (await every('fork', { ...options, session }))[0];
}

async function handOver(session, to, options) {
  return (await every('handOver', { ...options, session, to }))[0];
}

async function items(session, options) {
  return (await every('items', { ...options, session }))[0];
}

async function list(options) {
  return every('list', { ...options });
}

async function listArchived(options) {
  return every('listArchived', { ...options });
}

async function move(oldFolder, newFolder, options) {
  return (await every('move', { ...options, old: oldFolder, new: newFolder }))[0];
}

async function redact(text, options) {
  return (await every('redact', { ...options, text }))[0];
}

async function repair(session, options) {
  return (await every('repair', { ...options, session }))[0];
}

async function request(session, options) {
  return (await every('request', { ...options, session }))[0];
}

function search(query, options) {
  return new Records('search', { ...options, query, in: [options?.in ?? []].flat() });
}

async function tree(session, options) {
  return (await every('tree', { ...options, session }))[0];
}

async function usage(options) {
  return every('usage', { ...options, in: [options?.in ?? []].flat() });
}

async function verify(session, options) {
  return every('verify', { ...options, session });
}

function watch(options) {
  const { start, ...others } = options ?? {};
  return new Records('watch', { ...others, from: start, in: [options?.in ?? []].flat() });
}

module.exports = {
  entries,
  exportSession,
  follow,
  fork,
  handOver,
  items,
  list,
  listArchived,
  move,
  redact,
  repair,
  request,
  search,
  tree,
  usage,
  verify,
  watch,
};
