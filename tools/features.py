#!/usr/bin/env python3
"""Check each published crate without features, and with each of its features alone.

Features that one crate of the workspace asks for are on for all crates that are built together: only a build of its own shows whether
a crate compiles with less. Warnings count. With --list it only prints the commands.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def combinations(package):
    """Return the arguments of each build: no feature, then each one. `default` is what every other target builds."""
    yield []
    for name in sorted(package["features"]):
        if name != "default":
            yield ["--features", name]


def commands(cargo):
    found = subprocess.run(
        [cargo, "metadata", "--format-version", "1", "--no-deps", "--locked"], cwd=ROOT, capture_output=True, check=True
    )
    for package in json.loads(found.stdout)["packages"]:
        if package["publish"] == [] or not package["features"]:
            continue
        for features in combinations(package):
            yield [cargo, "clippy", "-q", "--locked", "-p", package["name"], "--no-default-features", *features]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the commands and run nothing")
    arguments = parser.parse_args()
    failed = 0
    for command in commands(os.environ.get("CARGO", "cargo")):
        print(" ".join(command), flush=True)
        if not arguments.list:
            failed += subprocess.run([*command, "--", "-D", "warnings"], cwd=ROOT, check=False).returncode != 0
    if failed:
        sys.exit(f"{failed} builds failed")


if __name__ == "__main__":
    main()
