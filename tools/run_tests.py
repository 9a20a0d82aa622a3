#!/usr/bin/env python3
"""tools/skipped_tests.py [COMMAND…]

Runs a command of `cargo test … -- --show-output`, prints what it prints without the output of passed tests, and counts the tests of which that
output says that they were skipped, wholly or in part (`skipped: no shared data`), by reason. The counts are kept in target/skipped-tests.txt; without a
command they are printed again. Exits as the command does. `make unit` runs it, and `make test` ends with the counts."""
import argparse, collections, os, pathlib, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "skipped-tests.txt")


def skipped(lines, show):
    """the number of tests for each reason; what is not the output of a passed test goes to `show`"""
    found, binary, test, is_passed = set(), 0, None, False
    for line in lines:
        text = line.rstrip("\n")
        if re.fullmatch(r"running \d+ tests?", text):
            binary += 1
        if text == "successes:":
            is_passed = True
        elif text == "failures:" or text.startswith("test result: "):
            is_passed = False
        if not is_passed:
            show(line)
        elif name := re.fullmatch(r"---- (.+) stdout ----", text):
            test = name[1]
        elif text.startswith("skipped: "):
            found.add((binary, test, text.removeprefix("skipped: ")))
    return collections.Counter(reason for _, _, reason in found)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("command", nargs=argparse.REMAINDER, help="a command with its arguments")
    command = a.parse_args().command
    if not command:
        sys.stdout.write(KEPT.read_text() if KEPT.exists() else "")
        return 0
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace")
    counts = skipped(run.stdout, lambda line: print(line, end="", flush=True))
    rows = [f"skipped in {count} {'tests' if count > 1 else 'test'}: {reason}\n" for reason, count in counts.most_common()]
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text("".join(rows) or "no test was skipped\n")
    return run.wait()


if __name__ == "__main__":
    sys.exit(main())
