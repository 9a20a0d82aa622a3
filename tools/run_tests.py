#!/usr/bin/env python3
"""tools/run_tests.py [COMMAND…]

Runs a command of `cargo test … -- --show-output` and prints its output without that of passed tests. Two things are added:

- A test that hangs is named. A test may take LIMIT seconds, or the limit of its group below; then the command and its children are stopped, and
  the exit code is 1.
- The tests that were skipped, wholly or in part (`skipped: no shared data` in their output), are counted by reason. The counts are kept in
  target/skipped-tests.txt; without a command they are printed again.

Otherwise it exits as the command does. `make unit` runs it, and `make test` ends with the counts."""
import argparse, collections, os, pathlib, queue, re, signal, subprocess, sys, threading, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "skipped-tests.txt")
# Seconds. Most tests take less than one; the longest that we saw took two minutes on two busy cores.
LIMIT = 600
# Groups of tests that take long by design: a pattern of their names, and their limit in seconds. They kill processes at every step of something.
GROUPS = ((re.compile(r"^(crash|faults|kill|agent|counting|soak)\w*::"), 1200),)
# The number of seconds after which the test harness reports a running test, once.
REPORTED_AFTER = 60


def limit_of(test, limit):
    """the limit of the group of a test; `limit` if it is in none"""
    return next((of_group for pattern, of_group in GROUPS if pattern.search(test)), limit)


class Tests:
    """The tests of an output: those that skipped something and passed, and those that run for more than a minute."""

    def __init__(self):
        self.found, self.binary, self.test, self.is_passed = set(), 0, None, False
        self.long = {}

    def read(self, line):
        """reads a line; returns whether it is shown: output of a passed test is not"""
        text = line.rstrip("\n")
        if re.fullmatch(r"running \d+ tests?", text):
            self.binary += 1
            self.long.clear()
        if running := re.fullmatch(r"test (.+) has been running for over \d+ seconds", text):
            self.long[running[1]] = time.monotonic() - REPORTED_AFTER
        elif ended := re.match(r"test (.+?)(?: - should panic)? \.\.\. ", text):
            self.long.pop(ended[1], None)
        if text == "successes:":
            self.is_passed = True
        elif text == "failures:" or text.startswith("test result: "):
            self.is_passed = False
            self.long.clear()
        if not self.is_passed:
            return True
        if name := re.fullmatch(r"---- (.+) stdout ----", text):
            self.test = name[1]
        elif text.startswith("skipped: "):
            self.found.add((self.binary, self.test, text.removeprefix("skipped: ")))
        return False

    def hanging(self, limit):
        """the tests that have run for longer than they may"""
        now = time.monotonic()
        return [test for test, start in self.long.items() if now - start > limit_of(test, limit)]

    def rows(self):
        counts = collections.Counter(reason for _, _, reason in self.found)
        rows = [f"skipped in {count} {'tests' if count > 1 else 'test'}: {reason}\n" for reason, count in counts.most_common()]
        return "".join(rows) or "no test was skipped\n"


def run(command, limit):
    """runs the command; returns its exit code"""
    # A group of its own: what a test started is stopped with it.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    tests = Tests()
    try:
        while True:
            try:
                line = lines.get(timeout=1)
            except queue.Empty:
                line = ""
            if line is None:
                break
            if line and tests.read(line):
                print(line, end="", flush=True)
            if hanging := tests.hanging(limit):
                print("stopped, as these tests did not end in time:", *hanging, sep="\n    ", flush=True)
                return 1
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.write_text(tests.rows())
        return process.wait()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--limit", type=float, default=LIMIT, help="seconds for a test that is in no group, at least 60")
    a.add_argument("command", nargs=argparse.REMAINDER, help="a command with its arguments")
    o = a.parse_args()
    if o.command:
        return run(o.command, o.limit)
    sys.stdout.write(KEPT.read_text() if KEPT.exists() else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
