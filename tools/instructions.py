#!/usr/bin/env python3
"""tools/instructions.py [write]

Counts the instructions of each area of crates/transcript-engine/examples/counts.rs with callgrind, and compares them with
tools/instructions.txt. Fails if one is more than 3 % above. `write` renews the file. Counts depend on the compiler, the C library
and the processor: the file names the first, and the tool says when it is another. Needs Python and valgrind; `make bench-check`
builds the program first."""
import argparse, os, pathlib, re, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STORED = ROOT / "tools" / "instructions.txt"
PROGRAM = ROOT / "target" / "release" / "examples" / "counts"
AREAS = ["scan", "index", "tree", "path", "request", "turn", "append"]
# Hash maps have random keys and an append asks for the time: five runs of one build differed by less than 0.3 %.
MAX_GROWTH = 0.03


def count(area):
    # On one processor, so that all work is on the thread that is counted.
    pin = (lambda: os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])) if hasattr(os, "sched_setaffinity") else None
    with tempfile.TemporaryDirectory() as temp:
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + os.path.join(temp, "out"), "--toggle-collect=counts::measured*",
                   str(PROGRAM), area]
        done = subprocess.run(command, capture_output=True, text=True, preexec_fn=pin)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found or not int(found[1]):
        sys.exit("%s: callgrind counted nothing:\n%s" % (area, done.stderr))
    return int(found[1])


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("write", nargs="?", choices=["write"], help="renew the stored counts")
    o = a.parse_args()
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    stored = dict(re.findall(r"^(\w+) +(\d+)$", STORED.read_text(), re.M)) if STORED.exists() else {}
    if stored and rustc not in STORED.read_text():
        print("The stored counts are of another compiler than %s." % rustc)
    print("| area | instructions | stored | change |\n| --- | ---: | ---: | ---: |")
    counted, failed = {}, []
    for area in AREAS:
        counted[area] = now = count(area)
        before = int(stored.get(area, 0))
        change = "%+.2f %%" % (100 * (now / before - 1)) if before else "nothing stored"
        if now > before * (1 + MAX_GROWTH):
            failed.append(area)
            change += " **!**"
        print("| %s | %s | %s | %s |" % (area, f"{now:,}", f"{before:,}", change), flush=True)
    if o.write:
        valgrind = subprocess.run(["valgrind", "--version"], capture_output=True, text=True).stdout.strip()
        lines = ["# Instructions of each area: make bench-check BASELINE=write", "# %s, %s, %s" % (rustc, valgrind, os.uname().machine)]
        STORED.write_text("\n".join(lines + ["%-8s %d" % pair for pair in counted.items()]) + "\n")
        print("written to %s" % STORED.relative_to(ROOT))
    elif failed:
        sys.exit("more than %.0f %% above the stored counts: %s" % (100 * MAX_GROWTH, ", ".join(failed)))


if __name__ == "__main__":
    main()
