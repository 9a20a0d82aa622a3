'use strict';

// Programs with this package as one file, made by the tools in the folder TRANSCRIPT_BUNDLERS (with a node_modules), and
// run where nothing is installed.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');

const { platform } = require(path.join(path.dirname(require.resolve('transcript-engine')), 'lib/platform.js'));

const TOOLS = process.env.TRANSCRIPT_BUNDLERS;
const HERE = path.dirname(__dirname);
const ADDON = `transcript.${platform()}.node`;
const ADDON_FILE = require.resolve(`transcript-engine-${platform()}`);

const USE = `
const session = await Session.create(process.argv.at(-1), { cwd: '/', version: '1' });
await session.append({ user: 'hello' });
const { messages } = await session.request();
await session.close();
const [{ kind }] = await entries(process.argv.at(-1)).toArray();
console.log(messages[0].content, kind);
`;
const MODULE = `import { Session, entries } from 'transcript-engine';\n${USE}`;
const SCRIPT = `const { Session, entries } = require('transcript-engine');\n(async () => {${USE}})();`;

/** Runs a test with a folder for the build, which sees the installed packages, and one for the result. */
function bundled(name, tool, build) {
  const command = tool && TOOLS && path.join(TOOLS, 'node_modules/.bin', tool);
  const skip = command && fs.existsSync(command) ? false : `no ${tool}`;
  test(`${name} starts where nothing is installed`, { skip }, (context) => {
    const work = fs.mkdtempSync(path.join(HERE, 'bundle-'));
    const out = fs.mkdtempSync(path.join(os.tmpdir(), 'transcript-bundle-'));
    try {
      fs.writeFileSync(path.join(work, 'app.mjs'), MODULE);
      fs.writeFileSync(path.join(work, 'app.cjs'), SCRIPT);
      fs.writeFileSync(path.join(work, 'package.json'), '{"private":true}');
      const run = (file, given, options) => execFileSync(file, given, { cwd: work, encoding: 'utf8', ...options });
      let built;
      try {
        built = build({ command, work, out, run });
      } catch (error) {
        // Deno gets the start of its executables from there, and npm has no package of it.
        if (!error.message.includes('dl.deno.land')) throw error;
        context.skip('dl.deno.land cannot be reached');
        return;
      }
      const [program, ...given] = built;
      const session = path.join(out, '1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl');
      const { TRANSCRIPT_NATIVE: _, NODE_PATH: __, ...env } = process.env;
      const shown = run(program, [...given, session], { cwd: out, env });
      assert.match(shown, /hello session/);
    } finally {
      fs.rmSync(work, { recursive: true });
      fs.rmSync(out, { recursive: true });
    }
  });
}

test('the loader writes out the file of each platform, for bundlers to find it', () => {
  const folder = path.join(path.dirname(require.resolve('transcript-engine')), 'lib');
  const loader = fs.readFileSync(path.join(folder, 'native.js'), 'utf8');
  const { platforms } = require(path.join(folder, 'platform.js'));
  const written = [...loader.matchAll(/\brequire\('(transcript-engine-[^']+)'\)/g)].map(([, file]) => file);
  const expected = Object.keys(platforms).map((name) => `transcript-engine-${name}/transcript.${name}.node`);
  assert.deepEqual(written.sort(), expected.sort());
});

for (const [format, source, end] of [['esm', 'app.mjs', 'mjs'], ['cjs', 'app.cjs', 'cjs']]) {
  // `copy` leaves a `require` of the file, which an ES module does not have.
  for (const loader of format === 'cjs' ? ['file', 'copy'] : ['file']) {
    bundled(`a bundle of esbuild (${format}, loader ${loader})`, 'esbuild', ({ command, out, run }) => {
      const file = path.join(out, `app.${end}`);
      const options = [`--format=${format}`, `--loader:.node=${loader}`, `--outfile=${file}`];
      run(command, [source, '--bundle', '--platform=node', '--log-level=error', ...options]);
      return [process.execPath, file];
    });
  }
}

bundled('an executable of bun', 'bun', ({ command, out, run }) => {
  const file = path.join(out, 'app');
  run(command, ['build', '--compile', 'app.mjs', '--outfile', file]);
  return [file];
});

bundled('an executable of deno', 'deno', ({ command, out, run }) => {
  const file = path.join(out, 'app');
  // Deno puts into the executable what the program imports, and the folders that it is told to.
  run(command, ['compile', '--quiet', '-A', '--no-check', '--include', ADDON_FILE, '--output', file, 'app.mjs']);
  return [file];
});

/** Makes an executable of Node of a bundle, with these assets. */
function singleExecutable({ work, out, run }, assets) {
  const bin = (tool) => path.join(TOOLS, 'node_modules/.bin', tool);
  // The addon stays out of the script: it is an asset, or beside the executable.
  const options = ['--format=cjs', '--external:*.node', '--outfile=app.js', '--log-level=error'];
  run(bin('esbuild'), ['app.cjs', '--bundle', '--platform=node', ...options]);
  const config = { main: 'app.js', output: 'app.blob', disableExperimentalSEAWarning: true, assets };
  fs.writeFileSync(path.join(work, 'sea.json'), JSON.stringify(config));
  run(process.execPath, ['--experimental-sea-config', 'sea.json'], { stdio: 'pipe' });
  const file = path.join(out, 'app');
  fs.copyFileSync(process.execPath, file);
  fs.chmodSync(file, 0o755);
  const fuse = ['--sentinel-fuse', 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'];
  run(bin('postject'), [file, 'NODE_SEA_BLOB', 'app.blob', ...fuse], { stdio: 'pipe' });
  return [file];
}

bundled('an executable of Node with the addon as an asset', 'postject', (place) =>
  singleExecutable(place, { [ADDON]: ADDON_FILE }),
);

bundled('an executable of Node with the addon beside it', 'postject', (place) => {
  fs.copyFileSync(ADDON_FILE, path.join(place.out, ADDON));
  return singleExecutable(place, {});
});
