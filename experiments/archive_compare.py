#!/usr/bin/env python3
"""Compares the archive with restic, borg and `zstd -3` a file, in one run: sizes, times, peak memory.

    experiments/archive_compare.py BINARY TREE…

Each TREE is a folder of projects. restic and borg are taken from PATH, and omitted if they are missing; both compress with zstd, restic
by its default (`--compression auto`) and borg with `zstd,3`; borg does not encrypt. Times are medians of three rounds; what one program did is removed before
the next one starts.
"""
import argparse, os, random, shutil, statistics, subprocess, sys, tempfile, time

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("binary", help="the command transcript")
arguments.add_argument("trees", nargs="+", metavar="tree", help="a folder of projects")
given = arguments.parse_args()
binary, trees = os.path.abspath(given.binary), given.trees
ROUNDS = 3
place = tempfile.mkdtemp()
environment = dict(
    os.environ,
    TRANSCRIPT_ARCHIVE=os.path.join(place, "archive"),
    RESTIC_PASSWORD="x",
    RESTIC_CACHE_DIR=os.path.join(place, "restic-cache"),
    BORG_BASE_DIR=os.path.join(place, "borg-home"),
    BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK="yes",
    XDG_CACHE_HOME=os.path.join(place, "cache"),
)


def measure(command, folder=None):
    """Returns seconds and the peak memory in MiB."""
    start = time.monotonic()
    process = subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - start
    if process.returncode:
        sys.exit(f"{command}: exit {process.returncode}: {error.decode()}")
    return seconds, usage.ru_maxrss / 1024


def size(path):
    total = 0
    for folder, _, files in os.walk(path):
        total += sum(os.path.getsize(os.path.join(folder, name)) for name in files)
    return total


def below(name):
    return os.path.join(place, name)


def fresh(*names):
    for name in names:
        shutil.rmtree(below(name), ignore_errors=True)


def transcript(tree):
    fresh("archive")
    return (
        lambda: measure([binary, "keep", "-q", "--root", tree]),
        lambda: measure([binary, "restore", "-q", "--all", "--to", os.path.join(below("back"), "projects")]),
        lambda: size(below("archive")),
    )


def restic(tree):
    fresh("restic", "restic-cache")
    measure(["restic", "init", "-q", "-r", below("restic")])
    return (
        lambda: measure(["restic", "backup", "-q", "-r", below("restic"), "."], tree),
        lambda: measure(["restic", "restore", "-q", "-r", below("restic"), "latest", "--target", below("back")]),
        lambda: size(below("restic")),
    )


def borg(tree):
    fresh("borg", "borg-home")
    measure(["borg", "init", "-e", "none", below("borg")])
    number = iter(range(100))
    os.makedirs(below("back"), exist_ok=True)

    def restore():
        os.makedirs(below("back"), exist_ok=True)
        return measure(["borg", "extract", below("borg") + "::0"], below("back"))

    return (
        lambda: measure(["borg", "create", "-C", "zstd,3", f"{below('borg')}::{next(number)}", "."], tree),
        restore,
        lambda: size(below("borg")),
    )


def zstd(tree):
    fresh("zstd")

    def capture():
        shutil.copytree(tree, below("zstd"), copy_function=lambda source, target: target, dirs_exist_ok=True)
        script = 'find . -type f -print0 | xargs -0 -P2 -n50 sh -c \'for f; do zstd -q -3 -f "$f" -o "$0/$f.zst"; done\' ' + below("zstd")
        return measure(["sh", "-c", script], tree)

    def restore():
        shutil.copytree(tree, below("back"), copy_function=lambda source, target: target, dirs_exist_ok=True)
        script = 'find . -type f -print0 | xargs -0 -P2 -n50 sh -c \'for f; do zstd -q -d -f "$f" -o "$0/${f%.zst}"; done\' ' + below("back")
        return measure(["sh", "-c", script], below("zstd"))

    return capture, restore, lambda: size(below("zstd"))


def grow(tree):
    """Appends to one session; returns a function that undoes it."""
    names = [os.path.join(folder, name) for folder, _, files in os.walk(tree) for name in files if name.endswith(".jsonl")]
    path = random.Random(1).choice(sorted(names))
    length = os.path.getsize(path)
    with open(path, "ab") as file:
        file.write(b'{"type":"user","uuid":"11111111-2222-4333-8444-555555555555","message":{"role":"user","content":"one more line"}}\n' * 20)
    return lambda: os.truncate(path, length)


programs = [transcript] + [program for program in (restic, borg) if shutil.which(program.__name__)] + [zstd]
try:
    for tree in trees:
        raw = size(tree)
        print(f"\n{os.path.basename(os.path.dirname(tree)) or tree}: {raw / 1e6:.0f} MB, {sum(len(f) for _, _, f in os.walk(tree))} files\n")
        print("| | size | capture | memory | one of them grew | restore | memory |\n| --- | --- | --- | --- | --- | --- | --- |")
        for program in programs:
            captures, grown, restores = [], [], []
            for _ in range(ROUNDS):
                fresh("back")
                capture, restore, stored = program(tree)
                captures.append(capture())
                length = stored()
                fresh("back")
                restores.append(restore())
                if program is not zstd:
                    undo = grow(tree)
                    try:
                        grown.append(capture())
                    finally:
                        undo()
            seconds = statistics.median(time for time, _ in captures)
            back = statistics.median(time for time, _ in restores)
            again = f"{statistics.median(time for time, _ in grown) * 1000:.0f} ms" if grown else "-"
            print(
                f"| {program.__name__} | {length / 1e6:.2f} MB, {100 * length / raw:.1f} % | {seconds:.2f} s, {raw / 1e6 / seconds:.0f} MB/s "
                f"| {max(peak for _, peak in captures):.0f} MiB | {again} | {back:.2f} s, {raw / 1e6 / back:.0f} MB/s | {max(peak for _, peak in restores):.0f} MiB |",
                flush=True,
            )
finally:
    shutil.rmtree(place)
