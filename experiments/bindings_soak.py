#!/usr/bin/env python3
"""Reads damaged sessions through a binding for a while, and watches its memory.

Usage: bindings_soak.py [--seconds N] [--rounds N] [--node FOLDER] PATH ...

Runs in a Python that has the package `transcript-engine`; with --node, in an npm project that has the package of that name.
A round is one function on one damaged copy of a session of PATH. Exits with 1 when the process ends early, a function
fails as a defect of the package, or the memory still grows in the second half of the rounds.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bindings_agree import FUNCTIONS, OUT, REPEATER, damaged, in_python

# A copy is used by every function; then there is another one.
FILES = 40


def rss(process: int | str = "self") -> int:
    """Returns the resident memory of a process, in KiB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--node", type=Path)
    parser.add_argument("paths", nargs="+", type=Path)
    arguments = parser.parse_args()
    sources = [file for path in arguments.paths for file in sorted(path.rglob("*.jsonl"))]
    sources = [file for file in sources if file.stat().st_size < 300_000]
    rng = random.Random(11)
    node = None
    if arguments.node is not None:
        node = subprocess.Popen(
            ["node", "--expose-gc", "-e", REPEATER + "setInterval(() => global.gc(), 200).unref();", str(OUT / "node")],
            cwd=arguments.node,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    rounds = failed = defects = 0
    memory: list[int] = []
    end = time.monotonic() + arguments.seconds
    with tempfile.TemporaryDirectory() as folder:
        while rounds < arguments.rounds or time.monotonic() < end:
            for file in damaged(rng, Path(folder), sources, FILES):
                for function in FUNCTIONS:
                    if node is None:
                        answer = in_python(function, str(file))
                    else:
                        assert node.stdin is not None and node.stdout is not None
                        node.stdin.write((json.dumps([function, str(file)]) + "\n").encode())
                        node.stdin.flush()
                        line = node.stdout.readline()
                        if not line:
                            print(f"the process ended with {node.wait()} at {function} of {file}")
                            return 1
                        answer = json.loads(line)
                    rounds += 1
                    failed += "error" in answer
                    if answer.get("error") == "panic":
                        defects += 1
                        print(f"a defect: {function} of {file}")
                file.unlink()
            memory.append(rss("self" if node is None else node.pid))
    half = memory[len(memory) // 2 :]
    thirds = [sorted(part)[len(part) // 2] for part in (half[: len(half) // 2], half[len(half) // 2 :])]
    print(
        f"{rounds} rounds, {failed} refused, {defects} defects; memory {memory[0] >> 10} MiB at first, "
        f"{thirds[0] >> 10} and {thirds[1] >> 10} MiB in the third and last quarter, at most {max(memory) >> 10}"
    )
    return 1 if defects or thirds[1] > thirds[0] * 1.05 + 4096 else 0


if __name__ == "__main__":
    sys.exit(main())
