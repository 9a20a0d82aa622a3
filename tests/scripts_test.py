#!/usr/bin/env python3
"""tests/scripts_test.py

Runs every script of tools, experiments and tests with --help, which must say what it does and do nothing, and looks for experiments that
experiments/README.md does not name, for Python files that are neither a script nor imported by one, and for files that git ignores and tracks all the
same. Exits with 1 when there are any, or when tools/run_tests.py counts wrong or names no test that hangs. Needs nothing but Python and, for the last, git."""
import argparse, os, pathlib, re, signal, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def scripts():
    """the programs among the files of tools, experiments and tests"""
    for path in sorted(path for folder in ("tools", "experiments", "tests", "tests/compat") for path in ROOT.glob(f"{folder}/*")):
        if path.is_file() and path.read_bytes().startswith(b"#!") and b"python" in path.read_bytes().split(b"\n")[0]:
            yield path


def used_by_nothing():
    programs = {*scripts()}
    for path in sorted({*ROOT.glob("tools/*.py"), *ROOT.glob("experiments/*.py")} - programs):
        imports = re.compile(rf"^(?:import|from) {path.stem}\b", re.M)
        if not any(imports.search(program.read_text()) for program in path.parent.glob("*.py")):
            yield f"{path.relative_to(ROOT)}: no script, as it has no first line with #!, and no script imports it"


def unexplained():
    named = re.findall(r"^\| `(\w+\.py)` \|", (ROOT / "experiments/README.md").read_text(), re.M)
    there = [path.name for path in sorted(ROOT.glob("experiments/*.py"))]
    for name in sorted({*there} ^ {*named}):
        yield f"experiments/README.md: its table and the folder differ in {name}"


def without_help():
    for path in scripts():
        asked = subprocess.run([sys.executable, "-B", path, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if asked.returncode != 0 or path.name not in asked.stdout:
            yield f"{path.relative_to(ROOT)}: --help prints no help: {(asked.stderr or asked.stdout).strip()[-100:]}"


TESTED = """
running 3 tests
test a ... ok

successes:

---- a stdout ----
skipped: no shared data
skipped: no shared data

---- b stdout ----
skipped: no shared data

successes:
    a
    b

failures:

---- c stdout ----
skipped: no python3

test result: FAILED
"""


def miscounted():
    """what tools/run_tests.py makes of the output of tests: those that passed and those that failed"""
    with tempfile.TemporaryDirectory() as folder:
        script = [sys.executable, "-B", ROOT / "tools/run_tests.py"]
        environment = {**os.environ, "CARGO_TARGET_DIR": folder}
        run = [sys.executable, "-c", f"import sys; print({TESTED!r}, end=''); sys.exit(101)"]
        ran = subprocess.run([*script, *run], env=environment, capture_output=True, text=True)
        counts = subprocess.run(script, env=environment, capture_output=True, text=True).stdout
    if ran.returncode != 101 or "shared data" in ran.stdout or "no python3" not in ran.stdout or counts != "skipped in 2 tests: no shared data\n":
        yield f"tools/run_tests.py: exit code {ran.returncode}, {ran.stdout!r}, {counts!r}"


HANGS = """
import signal
print("running 2 tests")
print("test quick::one has been running for over 60 seconds")
print("test slow::two has been running for over 60 seconds")
print("test quick::one ... ok", flush=True)
signal.pause()
"""


def hanging_tests_that_are_not_named():
    """whether tools/run_tests.py stops a test that never ends, and names it and no other"""
    if not hasattr(signal, "pause"):
        return print("skipped: no signals")
    with tempfile.TemporaryDirectory() as folder:
        script = [sys.executable, "-B", ROOT / "tools/run_tests.py", "--limit", "61"]
        environment = {**os.environ, "CARGO_TARGET_DIR": folder}
        ran = subprocess.run([*script, sys.executable, "-c", HANGS], env=environment, capture_output=True, text=True)
    if ran.returncode != 1 or not ran.stdout.endswith("did not end in time:\n    slow::two\n"):
        yield f"tools/run_tests.py: exit code {ran.returncode}, {ran.stdout!r}"


def tracked_though_ignored():
    listed = ["git", "-C", str(ROOT), "ls-files", "--cached", "--ignored", "--exclude-standard"]
    try:
        found = subprocess.run(listed, capture_output=True, text=True)
    except FileNotFoundError:
        return print("skipped: no git")
    if found.returncode != 0:
        return print("skipped: not a clone")
    yield from (f"{name}: is ignored and tracked" for name in found.stdout.splitlines())


def main():
    argparse.ArgumentParser(description=__doc__.split("\n\n")[1]).parse_args()
    assert sum(1 for _ in scripts()) > 20
    wrong = [*without_help(), *used_by_nothing(), *unexplained(), *miscounted(), *hanging_tests_that_are_not_named(), *tracked_though_ignored()]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{sum(1 for _ in scripts())} scripts, {len(wrong)} faults")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
