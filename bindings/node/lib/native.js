'use strict';

// Loads the addon of this platform: the file that TRANSCRIPT_NATIVE names, else a file next to this package (as
// `make bindings` builds it), else an asset of a single executable application of Node, else the package of the platform.

const { builtin } = require('./builtin.js');
const { platform } = require('./platform.js');

/** Loads an addon by its path. */
function open(file) {
  const target = { exports: {} };
  process.dlopen(target, file);
  return target.exports;
}

/** Returns what a bundler made of an addon: the addon, or where it put the file, seen from the program. */
function opened(loaded) {
  const found = loaded?.default ?? loaded;
  if (typeof found !== 'string') return found;
  const fs = builtin('node:fs');
  const path = builtin('node:path');
  const programs = [process.argv[1], process.execPath].filter((program) => program && fs.existsSync(program));
  const folders = programs.map((program) => path.dirname(fs.realpathSync(program)));
  if (typeof __dirname === 'string') folders.unshift(__dirname);
  const files = folders.map((folder) => path.resolve(folder, found));
  const file = files.find((candidate) => fs.existsSync(candidate));
  if (file === undefined) throw new Error(`the bundler put the addon at ${found}, and it is not beside the program`);
  return open(file);
}

/** Returns the addon that is an asset of this executable, or beside it; undefined if the program is no such one. */
function ofExecutable(name) {
  let sea;
  try {
    sea = builtin('node:sea');
  } catch {
    // Before Node 18.20, and in other runtimes.
  }
  if (!sea?.isSea()) return undefined;
  const fs = builtin('node:fs');
  const path = builtin('node:path');
  const beside = path.join(path.dirname(process.execPath), name);
  if (fs.existsSync(beside)) return open(beside);
  let asset;
  try {
    asset = new Uint8Array(sea.getRawAsset(name));
  } catch (cause) {
    throw new Error(`this executable has no asset ${name}, and there is none beside it`, { cause });
  }
  // Only a file can be loaded. The folder belongs to this user only.
  const folder = fs.mkdtempSync(path.join(builtin('node:os').tmpdir(), 'transcript-'));
  try {
    const file = path.join(folder, name);
    fs.writeFileSync(file, asset, { mode: 0o500 });
    return open(file);
  } finally {
    // Windows keeps a loaded file.
    if (process.platform !== 'win32') fs.rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Returns the addon of the package of a platform, or why it cannot be loaded. Each name is written out, and within a
 * `try`: bundlers put such a file into their output, and do without the packages that are not installed.
 */
function ofPackage(name) {
  switch (name) {
    case 'linux-x64-gnu':
      try {
        return opened(require('transcript-engine-linux-x64-gnu/transcript.linux-x64-gnu.node'));
      } catch (cause) {
        return cause;
      }
    case 'linux-x64-musl':
      try {
        return opened(require('transcript-engine-linux-x64-musl/transcript.linux-x64-musl.node'));
      } catch (cause) {
        return cause;
      }
    case 'linux-arm64-gnu':
      try {
        return opened(require('transcript-engine-linux-arm64-gnu/transcript.linux-arm64-gnu.node'));
      } catch (cause) {
        return cause;
      }
    case 'linux-arm64-musl':
      try {
        return opened(require('transcript-engine-linux-arm64-musl/transcript.linux-arm64-musl.node'));
      } catch (cause) {
        return cause;
      }
    case 'darwin-x64':
      try {
        return opened(require('transcript-engine-darwin-x64/transcript.darwin-x64.node'));
      } catch (cause) {
        return cause;
      }
    case 'darwin-arm64':
      try {
        return opened(require('transcript-engine-darwin-arm64/transcript.darwin-arm64.node'));
      } catch (cause) {
        return cause;
      }
    case 'win32-x64-msvc':
      try {
        return opened(require('transcript-engine-win32-x64-msvc/transcript.win32-x64-msvc.node'));
      } catch (cause) {
        return cause;
      }
    default:
      return Object.assign(new Error(`there is no package for ${name}`), { code: 'MODULE_NOT_FOUND' });
  }
}

/** Returns whether an error says that there is no such file, and not that it cannot be loaded. */
function isMissing(cause) {
  return ['MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND', 'ERR_UNKNOWN_BUILTIN_MODULE'].includes(cause.code);
}

function find(name) {
  const file = `transcript.${name}.node`;
  // A name that bundlers do not try to find.
  const beside = `../${file}`;
  try {
    return require(beside);
  } catch (cause) {
    // A bundle has no files beside this one, and no `require` for them.
    if (!isMissing(cause) && typeof __filename === 'string' && __filename.endsWith('native.js')) return cause;
  }
  try {
    const found = ofExecutable(file);
    if (found !== undefined) return found;
  } catch (cause) {
    return cause;
  }
  return ofPackage(name);
}

function load() {
  // Not `require`: a bundle may have none.
  if (process.env.TRANSCRIPT_NATIVE) return open(builtin('node:path').resolve(process.env.TRANSCRIPT_NATIVE));
  const name = platform();
  const found = find(name);
  if (!(found instanceof Error)) return found;
  const packageName = `transcript-engine-${name}`;
  const { version } = require('../package.json');
  const message = isMissing(found)
    ? `transcript-engine has no addon for ${name} here. Install it with: npm install ${packageName}@${version}` +
      ' (npm omits it when a lock file was made on another platform, or with --omit=optional). A program that was' +
      ' bundled needs the addon in the bundle or beside it: see "Bundlers" in the README of transcript-engine'
    : `the addon of transcript-engine for ${name} cannot be loaded: ${found.message}. For a program that was bundled see` +
      ` "Bundlers" in the README of transcript-engine; else install it again with: npm install ${packageName}@${version}`;
  const error = new Error(message, { cause: found });
  error.code = 'TRANSCRIPT_NO_ADDON';
  throw error;
}

module.exports = load();
