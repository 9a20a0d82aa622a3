'use strict';

// Loads the addon of this platform: a file next to this package (as `make bindings` builds it), else the package of
// the platform.

const { platform } = require('./platform.js');

function load() {
  if (process.env.TRANSCRIPT_NATIVE) return require(process.env.TRANSCRIPT_NATIVE);
  const name = platform();
  const packageName = `transcript-${name}`;
  const causes = [];
  for (const candidate of [`../transcript.${name}.node`, packageName]) {
    try {
      return require(candidate);
    } catch (cause) {
      causes.push(cause);
      // A file that exists and cannot be loaded is the problem, not the package that is missing.
      if (cause.code !== 'MODULE_NOT_FOUND') break;
    }
  }
  const { version } = require('../package.json');
  const cause = causes[causes.length - 1];
  const message =
    cause.code === 'MODULE_NOT_FOUND'
      ? `transcript has no addon for ${name} here. Install it with: npm install ${packageName}@${version}` +
        ' (npm omits it when a lock file was made on another platform, or with --omit=optional)'
      : `the addon of transcript for ${name} cannot be loaded: ${cause.message}. A bundler must leave the package` +
        ` transcript out; else install it again with: npm install ${packageName}@${version}`;
  const error = new Error(message, { cause });
  error.code = 'TRANSCRIPT_NO_ADDON';
  throw error;
}

module.exports = load();
