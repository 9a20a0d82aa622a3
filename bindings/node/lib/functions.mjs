// The operations as functions, written by `tools/bindings_api.py` from `docs/operations.json`.

import functions from './functions.js';

export const {
  entries,
  exportSession,
  follow,
  listArchived,
  redact,
  repair,
  request,
  search,
  usage,
  verify,
  watch,
} = functions;
