'use strict';

/** Returns a module of the runtime. A program that was bundled as an ES module has no `require` for it. */
function builtin(name) {
  return process.getBuiltinModule ? process.getBuiltinModule(name) : require(name);
}

module.exports = { builtin };
