#!/bin/sh
# Builds the packages of a platform: a wheel and an sdist in bindings/python/dist, npm tarballs in bindings/node/dist.
#
# Usage: bindings/build.sh [TARGET], by default this machine. A Linux TARGET, such as aarch64-unknown-linux-musl, is linked by zig, for glibc 2.17 or
# musl 1.2; so is the wheel for this machine with TRANSCRIPT_MANYLINUX=1. The package ziglang comes from PyPI. Other targets need their own machine.
set -eu
case ${1-} in
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "$0"; exit ;;
esac
target=${1-}
cd "$(dirname "$0")"
here=$(pwd)
compiled=${CARGO_TARGET_DIR:-$here/../target}
mkdir -p "$compiled"
compiled=$(cd "$compiled" && pwd)
venv=$compiled/bindings-venv

# What npm calls a target, and the C library that pip asks for.
case $target in
    '') platform= compatibility= ;;
    x86_64-unknown-linux-gnu) platform=linux-x64-gnu compatibility=manylinux2014 ;;
    aarch64-unknown-linux-gnu) platform=linux-arm64-gnu compatibility=manylinux2014 ;;
    x86_64-unknown-linux-musl) platform=linux-x64-musl compatibility=musllinux_1_2 ;;
    aarch64-unknown-linux-musl) platform=linux-arm64-musl compatibility=musllinux_1_2 ;;
    x86_64-apple-darwin) platform=darwin-x64 compatibility= ;;
    aarch64-apple-darwin) platform=darwin-arm64 compatibility= ;;
    x86_64-pc-windows-msvc) platform=win32-x64-msvc compatibility= ;;
    *) echo "build.sh: there are no packages for $target" >&2; exit 2 ;;
esac
if [ -z "$target" ] && [ -n "${TRANSCRIPT_MANYLINUX:-}" ]; then
    compatibility=manylinux2014
fi
case $target in
    # What Python and Node load is a shared library, which links the C library of the system.
    *-musl) export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=-crt-static" ;;
esac

# Each package of Python is installed once, into a folder of its own.
tool() {
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 60 "$@"
}

python_packages() {
    if ! command -v python3 >/dev/null; then
        echo 'skipped: the wheel, as there is no python3'
        return
    fi
    rm -rf python/dist
    if ! [ -x "$venv/bin/maturin" ] && ! tool 'maturin>=1.9,<2'; then
        echo 'skipped: the wheel, as maturin cannot be installed'
        return
    fi
    set -- ${target:+--target "$target"}
    if [ -n "$compatibility" ]; then
        tool ziglang
        set -- "$@" --zig --compatibility "$compatibility"
    fi
    (cd python && PATH="$venv/bin:$PATH" maturin build --quiet --locked "$@" --out dist)
    # It says only what cargo thinks of manifests without an address.
    if ! (cd python && PATH="$venv/bin:$PATH" maturin sdist --out dist) >"$compiled/sdist.log" 2>&1; then
        cat "$compiled/sdist.log" >&2
        return 1
    fi
    ls -l python/dist
}

node_packages() {
    if ! command -v npm >/dev/null; then
        echo 'skipped: the npm packages, as there is no npm'
        return
    fi
    build=build
    if [ -n "$target" ] && [ -n "$compatibility" ]; then
        tool ziglang cargo-zigbuild
        build=zigbuild
    fi
    glibc=
    case $target in *-linux-gnu) glibc=.2.17 ;; esac
    (cd .. && PATH="$venv/bin:$PATH" cargo "$build" --quiet --locked --profile binding -p transcript-node ${target:+--target "$target$glibc"})
    rm -rf node/dist
    mkdir -p node/dist
    # shellcheck disable=SC2086
    node node/tools/pack.mjs "$compiled/${target:+$target/}binding" $platform
    ls -l node/dist
}

python_packages
node_packages
