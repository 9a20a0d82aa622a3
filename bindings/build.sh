#!/bin/sh
# Builds the packages for this platform: a wheel in bindings/python/dist, npm tarballs in bindings/node/dist.
# With TRANSCRIPT_MANYLINUX=1 the wheel is linked for glibc 2.17, which needs the package ziglang from PyPI.
set -eu
cd "$(dirname "$0")"
here=$(pwd)
target=${CARGO_TARGET_DIR:-$here/../target}
mkdir -p "$target"
target=$(cd "$target" && pwd)

python_packages() {
    if ! command -v python3 >/dev/null; then
        echo 'skipped: the wheel, as there is no python3'
        return
    fi
    venv=$target/bindings-venv
    rm -rf python/dist
    if ! [ -x "$venv/bin/maturin" ] && ! {
        python3 -m venv "$venv" &&
            "$venv/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
    }; then
        echo 'skipped: the wheel, as maturin cannot be installed'
        return
    fi
    zig=
    if [ -n "${TRANSCRIPT_MANYLINUX:-}" ]; then
        "$venv/bin/pip" install --quiet --disable-pip-version-check ziglang
        zig='--zig --compatibility manylinux2014'
    fi
    # shellcheck disable=SC2086
    (cd python && PATH="$venv/bin:$PATH" maturin build --quiet $zig --out dist)
    ls -l python/dist
}

node_packages() {
    if ! command -v npm >/dev/null; then
        echo 'skipped: the npm packages, as there is no npm'
        return
    fi
    (cd .. && cargo build --quiet --locked --profile binding -p transcript-node)
    rm -rf node/dist
    mkdir -p node/dist
    node node/tools/pack.mjs "$target/binding"
    ls -l node/dist
}

python_packages
node_packages
