// Makes the npm tarballs: one of this package, one with the addon of this platform.
//
// Usage: node tools/pack.mjs FOLDER [PLATFORM], the folder in which cargo put the library of that platform; of this one
// by default.

import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const here = dirname(dirname(fileURLToPath(import.meta.url)));
const built = process.argv[2];
const { platforms, platform } = require('../lib/platform.js');
const manifest = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'));
const { version, license } = manifest;
const library = { linux: 'libtranscript_node.so', darwin: 'libtranscript_node.dylib', win32: 'transcript_node.dll' };

const licences = ['LICENSE-APACHE', 'LICENSE-MIT'];

function pack(folder) {
  for (const licence of licences) copyFileSync(join(here, '..', '..', licence), join(folder, licence));
  execFileSync('npm', ['pack', '--silent', '--pack-destination', join(here, 'dist')], { cwd: folder });
}

function inFolder(make) {
  const folder = mkdtempSync(join(tmpdir(), 'transcript-npm-'));
  try {
    make(folder);
    pack(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const name = process.argv[3] ?? platform();
if (!(name in platforms)) throw new Error(`${name} is none of ${Object.keys(platforms).join(', ')}`);
inFolder((folder) => {
  const file = `transcript.${name}.node`;
  copyFileSync(join(built, library[platforms[name].os[0]]), join(folder, file));
  const about = {
    name: `transcript-engine-${name}`,
    version,
    description: `The addon of the package transcript-engine for ${name}`,
    license,
    main: file,
    files: [file, ...licences],
    ...platforms[name],
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(about, null, 2)}\n`);
  writeFileSync(join(folder, 'README.md'), `The addon of the package \`transcript-engine\` for ${name}.\n`);
});

inFolder((folder) => {
  for (const file of ['index.js', 'index.mjs', 'index.d.ts', 'index.d.mts', 'records.d.ts', 'README.md']) {
    copyFileSync(join(here, file), join(folder, file));
  }
  cpSync(join(here, 'lib'), join(folder, 'lib'), { recursive: true });
  const names = Object.keys(platforms).map((name) => [`transcript-engine-${name}`, version]);
  const about = { ...manifest, files: [...manifest.files, ...licences], optionalDependencies: Object.fromEntries(names) };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(about, null, 2)}\n`);
});
