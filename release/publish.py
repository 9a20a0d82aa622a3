#!/usr/bin/env python3
"""release/publish.py [--really] [crates] [python] [npm]

Publishes the crates of the workspace, and what `make bindings` or the workflow put into bindings/python/dist and bindings/node/dist. Without --really it
only prints the commands. The rehearsal (release/rehearse.py) runs the same commands with registries on loopback. Tokens come from the environment, under
the names that cargo, twine and npm give them: CARGO_REGISTRY_TOKEN, TWINE_PASSWORD, NODE_AUTH_TOKEN. What is published cannot be changed or taken back."""
import argparse, os, pathlib, subprocess, sys, tempfile

from project import CARGO, ROOT, run

KINDS = ("crates", "python", "npm")


def python_files():
    return sorted((ROOT / "bindings/python/dist").glob("transcript_engine-*"))


def sorted_for_npm(files):
    """in the order in which they are published: the main package names those of the platforms, so it comes last"""
    return sorted(files, key=lambda file: (file.name.removeprefix("transcript-engine-")[0].isdigit(), file.name))


def npm_files():
    return sorted_for_npm((ROOT / "bindings/node/dist").glob("transcript-engine-*.tgz"))


def crates_commands(*options):
    # Cargo sorts them: a crate comes after those that it depends on.
    return [[CARGO, "publish", "--workspace", "--locked", *options]]


def python_commands(files, *options):
    return [[sys.executable, "-m", "twine", "upload", "--non-interactive", *options, *files]]


def npm_commands(files, *options):
    return [["npm", "publish", "--access", "public", *options, file] for file in files]


def npm_configuration(registry):
    """what npm must be told, in the file of its variable npm_config_userconfig; it reads the token from the environment"""
    host = registry.split("://")[1].rstrip("/")
    return f"registry={registry}\n//{host}/:_authToken=${{NODE_AUTH_TOKEN}}\n"


def environment(folder):
    """the environment of the commands, with the token for npm where npm looks for it"""
    if "NODE_AUTH_TOKEN" not in os.environ:
        return os.environ
    file = pathlib.Path(folder, "npmrc")
    file.write_text(npm_configuration(run(["npm", "config", "get", "registry"]).strip()))
    return {**os.environ, "npm_config_userconfig": str(file)}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--really", action="store_true", help="run the commands")
    a.add_argument("kinds", nargs="*", metavar="|".join(KINDS), help="all by default")
    o = a.parse_args()
    if unknown := {*o.kinds} - {*KINDS}:
        a.error(f"unknown: {', '.join(unknown)}")
    kinds = o.kinds or KINDS
    commands = crates_commands() if "crates" in kinds else []
    for kind, files, of in (("python", python_files(), python_commands), ("npm", npm_files(), npm_commands)):
        if kind in kinds and not files:
            sys.exit(f"there are no packages for {kind}: run `make bindings`")
        if kind in kinds:
            commands += of(files)
    with tempfile.TemporaryDirectory() as folder:
        for command in commands:
            print(*command, flush=True)
            if o.really:
                subprocess.run([*map(str, command)], cwd=ROOT, env=environment(folder), check=True)
    if not o.really:
        print("Nothing was published: add --really.")


if __name__ == "__main__":
    sys.exit(main())
