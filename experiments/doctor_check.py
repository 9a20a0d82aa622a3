#!/usr/bin/env python3
"""experiments/doctor_check.py CAMPAIGN [--bin PATH] [--cozempic PATH] [--files N]

Compares the findings of `cozempic doctor` (PyPI) and `transcript verify` in the same damaged sessions, by kind of damage: those of `repair_campaign --keep
CAMPAIGN` that are damaged in one known way, and the fixtures. Damage is found when a check of the damaged file reports something that it does
not report, or fewer times, in the session before; in the fixtures that expected.tsv calls damaged or lossy, when any does. Prints the table of docs/findings.md. Each doctor runs in a home of its own and may
neither write hooks nor call its server."""
import argparse, collections, json, os, pathlib, re, shutil, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
KINDS = "cut glue nul drop duplicate replay reorder swapped-parent cycle bad-utf8 surrogate removed-result dangling-pointer foreign".split()
QUIET = {f"COZEMPIC_{name}": "1" for name in ("NO_TELEMETRY", "NO_AUTO_UPDATE", "NO_AUTO_INIT", "NO_GLOBAL_INIT")}
# A check names five sessions at most.
AT_ONCE = 5


def doctor(cozempic, paths):
    """Returns the number of findings of the doctor for each file, by check."""
    found = {}
    for at in range(0, len(paths), AT_ONCE):
        some = {f"{number}0000000-0000-4000-8000-000000000000": path for number, path in enumerate(paths[at:at + AT_ONCE])}
        with tempfile.TemporaryDirectory() as home:
            project = pathlib.Path(home) / ".claude" / "projects" / "-x"
            project.mkdir(parents=True)
            for id, path in some.items():
                shutil.copy(path, project / f"{id}.jsonl")
            done = subprocess.run([cozempic, "doctor"], capture_output=True, text=True, cwd=home, env={**os.environ, **QUIET, "HOME": home})
        counts = {id[:8]: collections.Counter() for id in some}
        check = None
        for line in done.stdout.splitlines():
            title = re.match(r"\s+\S ([a-z-]+)\s+\[", line)
            check = title[1] if title else check
            for id, count in re.findall(r"(\d0000000)…(?:\((\d+) blocks\))?", line):
                counts[id][check] += int(count or 1)
        found.update({path: counts[id[:8]] for id, path in some.items()})
    return found


def verify(binary, paths):
    """The same of `verify`, by code."""
    found = {}
    for path in paths:
        done = subprocess.run([binary, "verify", "--json", path], capture_output=True, text=True)
        rows = [json.loads(line) for line in done.stdout.split("\n") if line]
        found[path] = collections.Counter(finding["code"] for row in rows for finding in row.get("findings", []))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", type=pathlib.Path)
    parser.add_argument("--bin", default="target/release/transcript")
    parser.add_argument("--cozempic", default="cozempic")
    parser.add_argument("--files", type=int, default=36, help="how many of a kind")
    args = parser.parse_args()
    if shutil.which(args.cozempic) is None:
        print("skipped: no cozempic (pip install cozempic)")
        return 0
    version = subprocess.run([args.cozempic, "--version"], capture_output=True, text=True, env={**os.environ, **QUIET}).stdout.strip()
    by_kind = {kind: sorted((args.campaign / "damaged").glob(f"*_{kind}.jsonl"))[:args.files] for kind in KINDS}
    damaged = [path for paths in by_kind.values() for path in paths]
    healthy = {path: args.campaign / "healthy" / path.name for path in damaged}
    tools = {version: lambda paths: doctor(args.cozempic, paths), "transcript": lambda paths: verify(args.bin, paths)}
    expected = (line.split("\t") for line in (ROOT / "fixtures/v1/findings/expected.tsv").read_text().splitlines()[1:])
    fixtures = [ROOT / "fixtures" / "v1" / name for name, verdict, *_ in expected if verdict in ("damaged", "lossy")]
    fixtures = [path for path in fixtures if path.exists()]
    reports = {name: tool([*damaged, *healthy.values(), *fixtures]) for name, tool in tools.items()}
    print(f"| damage | files | {' | '.join(tools)} |\n| --- | --- | --- | --- |")
    for kind, paths in [*by_kind.items(), ("all", damaged)]:
        found = [sum(bool(reports[name][path] - reports[name][healthy[path]]) for path in paths) for name in tools]
        print(f"| {kind} | {len(paths)} | {' | '.join(map(str, found))} |")
    found = [sum(bool(reports[name][path]) for path in fixtures) for name in tools]
    print(f"| fixtures | {len(fixtures)} | {' | '.join(map(str, found))} |")
    return 0


sys.exit(main())
