'use strict';

const native = require('./lib/native.js');
const { errorOf, ...errors } = require('./lib/errors.js');
const { Records } = require('./lib/records.js');

module.exports = {
  ...errors,
  Records,
  ...require('./lib/sdk.js'),
  ...require('./lib/functions.js'),
  ...require('./lib/session.js'),
  version: native.version(),
};
