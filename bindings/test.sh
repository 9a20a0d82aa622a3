#!/bin/sh
# Tests the packages that build.sh made, installed offline into a fresh virtual environment and a fresh npm project.
set -eu
cd "$(dirname "$0")"
here=$(pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

node_project() {
    mkdir -p "$work/node"
    (
        cd "$work/node"
        echo '{"name":"fresh","version":"1.0.0","private":true}' >package.json
        npm install --silent --offline --no-audit --no-fund --omit=optional "$here"/node/dist/transcript-engine-[0-9]*.tgz
        npm install --silent --offline --no-audit --no-fund --no-save "$here"/node/dist/*.tgz
    )
    cp -r "$here/node/test" "$here/node/examples" "$work/node"
}

has_node=
if command -v npm >/dev/null; then
    node_project
    has_node=1
    # Tools that make one file of a program; they are kept in the target folder.
    bundlers=${TRANSCRIPT_BUNDLERS:-${CARGO_TARGET_DIR:-$here/../target}/bundlers}
    if [ ! -d "$bundlers/node_modules" ]; then
        mkdir -p "$bundlers"
        (cd "$bundlers" && npm install --silent --no-audit --no-fund --no-save --fetch-retries 1 --fetch-timeout 60000 esbuild bun deno postject) ||
            echo 'skipped: the bundlers, as npm cannot install them'
    fi
    TRANSCRIPT_BUNDLERS=$(cd "$bundlers" && pwd)
    export TRANSCRIPT_BUNDLERS
    (cd "$work/node" && node --test test/*.test.js)
    if command -v tsc >/dev/null; then
        (cd "$work/node" && tsc --strict --noEmit --target es2022 --module nodenext --lib es2022,esnext.disposable,dom test/types.ts)
    else
        echo 'skipped: the types for TypeScript, as there is no tsc'
    fi
else
    echo 'skipped: the tests for Node, as there is no npm'
fi

if ! [ -d python/dist ]; then
    echo 'skipped: the tests for Python, as there is no wheel'
elif command -v python3 >/dev/null; then
    python3 -m venv "$work/python"
    "$work/python/bin/pip" install --quiet --no-index --disable-pip-version-check "$here"/python/dist/*.whl
    "$work/python/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 20 anyio trio ||
        echo 'skipped: the tests under trio, as pip cannot install it'
    if [ -n "$has_node" ]; then
        export TRANSCRIPT_NODE_AGENT="$work/node/examples/agent.mjs"
    fi
    # The command makes the archive that the package reads.
    command=${CARGO_TARGET_DIR:-$here/../target}/release/transcript
    if [ -x "$command" ]; then
        export TRANSCRIPT_COMMAND="${TRANSCRIPT_COMMAND:-$command}"
    fi
    "$work/python/bin/python" -m unittest discover -s python/tests
    if command -v pyright >/dev/null; then
        (cd python && pyright --pythonpath "$work/python/bin/python")
    else
        echo 'skipped: the types for Python, as there is no pyright'
    fi
else
    echo 'skipped: the tests for Python, as there is no python3'
fi
