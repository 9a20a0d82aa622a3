#!/bin/sh
# Installs the command transcript of this release for this user, without root: the program, its completions and its manual.
#
# Usage: sh install.sh [--prefix DIR] [--from ADDRESS-OR-FOLDER]
#
#   --prefix DIR   install into DIR/bin and DIR/share; ~/.local by default
#   --from PLACE   get the files of the release from there: an address, or a folder with the files. Without it the address
#                  of the release is used, or the environment variable TRANSCRIPT_BASE_URL, below which releases lie
#   --help         print this
#
# The archive must have the checksum that SHA256SUMS of the same place names: nothing is installed otherwise.
set -eu

version='@VERSION@'
base='@BASE_URL@'

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

usage() {
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0"
}

prefix=${HOME:-}/.local
from=
while [ $# -gt 0 ]; do
    case $1 in
        --prefix | --from)
            [ $# -ge 2 ] || fail "$1 needs a value"
            if [ "$1" = --prefix ]; then prefix=$2; else from=$2; fi
            shift 2
            ;;
        -h | --help) usage; exit 0 ;;
        *) fail "unknown option $1 (see --help)" ;;
    esac
done
case $prefix in
    /*) ;;
    *) prefix=$(pwd)/$prefix ;;
esac
if [ -z "$from" ]; then
    base=${TRANSCRIPT_BASE_URL:-$base}
    [ -n "$base" ] || fail "this release has no address yet: say with --from where its files are"
    from=${base%/}/v$version
fi

# The targets that may run on this system, the fastest first: memory is faster with glibc than in the static program.
linux() {
    if getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
        echo "$1-unknown-linux-gnu"
    fi
    echo "$1-unknown-linux-musl"
}
case $(uname -s)-$(uname -m) in
    Linux-x86_64) targets=$(linux x86_64) ;;
    Linux-aarch64 | Linux-arm64) targets=$(linux aarch64) ;;
    Darwin-x86_64) targets=x86_64-apple-darwin ;;
    Darwin-arm64) targets='aarch64-apple-darwin x86_64-apple-darwin' ;;
    *) fail "there is no archive for $(uname -s) on $(uname -m)" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# get NAME: a file of the release, into $work
get() {
    case $from in
        http://* | https://*)
            if command -v curl >/dev/null 2>&1; then
                curl --fail --silent --show-error --location --output "$work/$1" "$from/$1"
            elif command -v wget >/dev/null 2>&1; then
                wget -q -O "$work/$1" "$from/$1"
            else
                fail "curl or wget is needed to download"
            fi || fail "cannot download $from/$1"
            ;;
        *) cp "${from#file://}/$1" "$work/$1" || fail "cannot read $from/$1" ;;
    esac
}

sha256() {
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum <"$1"
    elif command -v shasum >/dev/null 2>&1; then
        shasum -a 256 <"$1"
    elif command -v openssl >/dev/null 2>&1; then
        openssl dgst -sha256 -r <"$1"
    else
        fail "sha256sum, shasum or openssl is needed to compare the checksum"
    fi | cut -d ' ' -f 1
}

get SHA256SUMS
listed=
name=
for target in $targets; do
    folder=transcript-$version-$target
    expected=$(awk -v file="$folder.tar.gz" '$2 == file { print $1 }' "$work/SHA256SUMS")
    [ -n "$expected" ] || continue
    listed=$folder.tar.gz
    get "$listed"
    actual=$(sha256 "$work/$listed")
    [ "$actual" = "$expected" ] || fail "$listed has the checksum $actual, and SHA256SUMS says $expected: nothing was installed"
    (cd "$work" && gzip -dc "$listed" | tar xf -)
    # A program for a newer glibc does not start.
    if "$work/$folder/transcript" --version >/dev/null 2>&1; then
        name=$folder
        break
    fi
done
[ -n "$listed" ] || fail "the release at $from has no archive for" $targets
[ -n "$name" ] || fail "the program of $listed does not start here"

share=$prefix/share
bash=$share/bash-completion/completions
zsh=$share/zsh/site-functions
fish=$share/fish/vendor_completions.d
mkdir -p "$prefix/bin" "$share/man/man1" "$bash" "$zsh" "$fish"
# Renamed at the end, so that a program that runs is not changed.
cp "$work/$name/transcript" "$prefix/bin/.transcript.new"
chmod 755 "$prefix/bin/.transcript.new"
mv -f "$prefix/bin/.transcript.new" "$prefix/bin/transcript"
cp "$work/$name"/man/*.1 "$share/man/man1"
cp "$work/$name/completions/transcript.bash" "$bash/transcript"
cp "$work/$name/completions/_transcript" "$zsh/_transcript"
cp "$work/$name/completions/transcript.fish" "$fish/transcript.fish"

echo "installed: $("$prefix/bin/transcript" --version) as $prefix/bin/transcript"
case :${PATH:-}: in
    *":$prefix/bin:"*) ;;
    *) echo "$prefix/bin is not in PATH. Add to the file that your shell reads at its start: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
case $prefix in
    "${HOME:-}/.local" | /usr | /usr/local) echo 'Completions for bash and fish are where these look for them.' ;;
    *) echo "Completions for bash and fish: source $bash/transcript or $fish/transcript.fish" ;;
esac
echo "Completions for zsh: add before compinit: fpath=($zsh \$fpath)"
