'use strict';

/** The platforms that have a package, with what npm needs to choose it. */
const platforms = {
  'linux-x64-gnu': { os: ['linux'], cpu: ['x64'], libc: ['glibc'] },
  'linux-x64-musl': { os: ['linux'], cpu: ['x64'], libc: ['musl'] },
  'linux-arm64-gnu': { os: ['linux'], cpu: ['arm64'], libc: ['glibc'] },
  'linux-arm64-musl': { os: ['linux'], cpu: ['arm64'], libc: ['musl'] },
  'darwin-x64': { os: ['darwin'], cpu: ['x64'] },
  'darwin-arm64': { os: ['darwin'], cpu: ['arm64'] },
  'win32-x64-msvc': { os: ['win32'], cpu: ['x64'] },
};

/** Returns the name of this platform. */
function platform() {
  const { platform: system, arch, report } = process;
  if (system === 'win32') return `win32-${arch}-msvc`;
  if (system !== 'linux') return `${system}-${arch}`;
  // The loaded libraries and the network are not needed, and slow.
  report.excludeNetwork = true;
  const { glibcVersionRuntime } = report.getReport().header;
  return `linux-${arch}-${glibcVersionRuntime ? 'gnu' : 'musl'}`;
}

module.exports = { platforms, platform };
