#!/usr/bin/env python3
"""tools/compare.py [--rounds N] [--bin PATH] SESSION.jsonl...

Times `transcript replay` and `resume` and common programs on the same files in the same run, and prints a Markdown
table for each file: median wall time, its ratio to `wc -l`, and the peak memory of the process. The rounds of all
commands are interleaved, so that a busy machine slows them equally. A command that is not installed is skipped."""
import argparse, os, shutil, statistics, subprocess, sys, time

LOOP = ("import json,sys\nfor line in open(sys.argv[1],'rb'):\n  try: d=json.loads(line)\n  except ValueError: continue\n"
        "  if isinstance(d,dict): d.get('uuid'),d.get('parentUuid')")


def commands(binary, path):
    yield "`cat`", ["cat", path]
    yield "`wc -l`", ["wc", "-l", path]
    yield "`transcript replay --format ids`", [binary, "-q", "replay", "--format", "ids", path]
    yield "`transcript replay --format json`", [binary, "-q", "replay", "--format", "json", path]
    yield "`transcript replay` (text)", [binary, "-q", "replay", path]
    yield "`transcript resume --json`", [binary, "-q", "resume", "--json", path]
    yield "Python `json.loads` loop", [sys.executable, "-c", LOOP, path]
    yield "`jq -c .uuid`", ["jq", "-c", ".uuid", path]


def run(command):
    """wall time in seconds and peak memory in MiB"""
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.execvp(command[0], command)
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit("%s ended with status %d" % (command[0], os.waitstatus_to_exitcode(status)))
    return time.monotonic() - start, usage.ru_maxrss / 1024


def written(command):
    """how many bytes a command prints"""
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    return sum(len(block) for block in iter(lambda: process.stdout.read(1 << 20), b""))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--bin", default="target/release/transcript")
    a.add_argument("session", nargs="+")
    o = a.parse_args()
    for path in o.session:
        todo = [(name, c) for name, c in commands(o.bin, path) if shutil.which(c[0])]
        run(["cat", path])  # into the page cache
        seen = {name: [] for name, _ in todo}
        for _ in range(o.rounds):
            for name, command in todo:
                seen[name].append(run(command))
        base = statistics.median(t for t, _ in seen["`wc -l`"])
        print("%.0f MB, %d rounds, load %.1f\n" % (os.path.getsize(path) / 1e6, o.rounds, os.getloadavg()[0]))
        print("| command | median | x `wc -l` | peak memory |\n| --- | ---: | ---: | ---: |")
        for name, _ in todo:
            wall = statistics.median(t for t, _ in seen[name])
            print("| %s | %.3f s | %.1f | %.0f MiB |" % (name, wall, wall / base, max(m for _, m in seen[name])))
        print("\n`resume --json` wrote %.0f MiB.\n" % (written([o.bin, "-q", "resume", "--json", path]) / 2**20))


main()
