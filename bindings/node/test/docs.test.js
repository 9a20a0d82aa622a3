'use strict';

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');

// The README of the package that is installed.
const README = path.join(path.dirname(require.resolve('transcript-engine')), 'README.md');

test('the examples of the README run, each after the ones before it', () => {
  const blocks = [...fs.readFileSync(README, 'utf8').matchAll(/```js\n(.*?)```/gs)].map(([, block]) => block);
  assert.ok(blocks.length > 3);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'transcript-docs-'));
  try {
    fs.symlinkSync(path.dirname(path.dirname(README)), path.join(folder, 'node_modules'));
    blocks.forEach((block, number) => {
      fs.writeFileSync(path.join(folder, `${number}.mjs`), block);
      const env = { ...process.env, CLAUDE_CONFIG_DIR: folder };
      execFileSync(process.execPath, [`${number}.mjs`], { cwd: folder, env, timeout: 60_000 });
    });
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});

test('a missing addon is named with the package and the command that installs it', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'transcript-bare-'));
  try {
    const copy = path.join(folder, 'node_modules', 'transcript-engine');
    fs.cpSync(path.dirname(README), copy, { recursive: true });
    fs.rmSync(path.join(copy, 'node_modules'), { recursive: true, force: true });
    const run = () => execFileSync(process.execPath, ['-e', "require('transcript-engine')"], { cwd: folder, stdio: 'pipe' });
    assert.throws(run, ({ stderr }) => /npm install transcript-engine-[a-z0-9-]+@\d+\.\d+\.\d+/.test(String(stderr)));
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});
