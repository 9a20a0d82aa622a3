// The operations as functions, written by `tools/bindings_api.py` from `docs/operations.json`.

import functions from './functions.js';

export const {
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
} = functions;
