#!/usr/bin/env python3
"""Fails each write, sync and cut of `transcript append` in turn, and looks in the file for what it acknowledged. Uses nothing of this project but the
command.

    tests/fault_append.py [--bin BINARY] [--on FOLDER ...] [--errors EIO ...] [--calls write ...] [--naive]

strace makes the nth call of one kind fail, or with `+` every call of that kind from the nth on. Each command waits for the answer to the one
before. The session is new, has entries, or ends
with a torn line, and is synced at each answer, every 100 ms, or at the end. Then each acknowledged entry is in the session once, every line is
whole, and the next `append` goes on; a part of an entry may stay only if its answer, or standard error, says so. After a failed sync nothing is
acknowledged any more. Needs strace. `--naive` is a writer as people write them, which has to fail, and the exit code is 1."""
import argparse, collections, itertools, json, os, pathlib, shutil, subprocess, sys, tempfile, uuid

CALLS = ["write", "pwrite64", "writev", "fsync", "fdatasync", "ftruncate", "linkat"]
SIZES = [1, 30, 300, 9000, 100, 70000, 5, 999]


def entry(number):
    return json.dumps({"type": "user", "uuid": str(uuid.UUID(int=number)), "parentUuid": str(uuid.UUID(int=number - 1)) if number > 1 else None, "isSidechain": False,
                       "sessionId": "s", "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": f"{number}"}}).encode() + b"\n"


STARTS = {"new": None, "old": b"".join(map(entry, range(1, 6))), "torn": b"".join(map(entry, range(1, 6))) + entry(6)[:-40]}


def naive(path):
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for command in sys.stdin:
        one = {"uuid": str(uuid.uuid4()), "text": json.loads(command).get("user")}
        try:
            os.write(file, json.dumps(one).encode())
            os.write(file, b"\n")
            os.fsync(file)
        except OSError:
            pass
        os.write(1, json.dumps({"ok": True, "entries": [{"uuid": one["uuid"]}]}).encode() + b"\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/debug/transcript")
    parser.add_argument("--on", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--errors", nargs="*", default=["EIO", "ENOSPC", "EINTR", "ENOSPC+", "EIO+"])
    parser.add_argument("--calls", nargs="*", default=CALLS)
    parser.add_argument("--naive", nargs="?", const="")
    args = parser.parse_args()
    if args.naive:
        return naive(args.naive)
    if shutil.which("strace") is None:
        return print("skipped: no strace")
    args.bin = os.path.abspath(args.bin)
    total, calls = collections.Counter(), collections.Counter()
    for folder in args.on or ["/tmp", "/dev/shm"]:
        with tempfile.TemporaryDirectory(dir=folder) as below:
            for (name, start), sync in itertools.product(STARTS.items(), ["each", "interval", "none"]):
                counts = collections.Counter()
                every_call(args, pathlib.Path(below).resolve(), start, sync, counts, calls)
                print(f"{folder} {name} {sync}:", *(f"{what}={count}" for what, count in counts.items()), flush=True)
                total.update(counts)
    wrong = ("lost", "doubled", "bad_lines", "untold_parts", "after_sync", "not_gone_on", "crash")
    print("calls:", *(f"{call}={count}" for call, count in sorted(calls.items())))
    print("all:", *(f"{what}={total[what]}" for what in ("runs", "writes", "acknowledged", "refused", "parts", *wrong)))
    return int(any(total[what] for what in wrong))


def every_call(args, folder, start, sync, counts, calls):
    for call in args.calls if args.naive is None else ["write"]:
        for kind in args.errors if args.naive is None else ["ENOSPC"]:
            if kind.endswith("+") and call not in CALLS:
                continue
            for number in itertools.count(1):
                if not one_run(args, folder, start, sync, call, kind, number, counts):
                    break
                calls[call] += 1


def converse(command, commands):
    """Runs a writer, and sends each command after the answer to the one before."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = b""
    for one in commands:
        try:
            child.stdin.write(json.dumps(one).encode() + b"\n")
            child.stdin.flush()
        except BrokenPipeError:
            break
        line = child.stdout.readline()
        out += line
        if not line.endswith(b"\n"):
            break
    rest, err = child.communicate(timeout=120)
    return subprocess.CompletedProcess(command, child.returncode, out + rest, err)


def one_run(args, folder, start, sync, call, kind, number, counts):
    place, log = folder / "place", folder / "log"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    path = place / "1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl"
    if start is not None:
        path.write_bytes(start)
    append = [args.bin, "append", path, "--create", "--sync", sync]
    if args.naive is not None:
        append = [sys.executable, "-I", "-S", __file__, "--naive", path]
    fault = f"inject={call}:error={kind.rstrip('+')}:when={number}{'+' if kind.endswith('+') else ''}"
    commands = [{"op": "append", "user": "x" * size} for size in SIZES]
    commands[4:4] = [{"op": "sync"}]
    done = converse(["strace", "-f", "-qq", "--seccomp-bpf", "-o", log, "-e", f"trace={call}", "-e", fault, *append], commands)
    if "INJECTED" not in log.read_text(errors="replace"):
        return False
    answers = [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]
    acked = [one["uuid"] for answer in answers if answer["ok"] for one in answer.get("entries", [])]
    refused = [answer for answer in answers if not answer["ok"]]
    counts.update(runs=1, writes=call in CALLS, acknowledged=len(acked), refused=len(refused))
    what = f"{call} {number} {kind}, {sync}"

    def wrong(name, detail):
        counts[name] += 1
        print(f"  {name}: {what}: {detail}; {done.returncode}: {done.stderr.decode(errors='replace').strip()[-300:]}", flush=True)

    is_loaded = b"error while loading shared libraries" not in done.stderr
    if is_loaded and args.naive is None and done.returncode not in (0, 1, 2):
        wrong("crash", "")
    kinds = [answer["ok"] or answer["error"]["kind"] for answer in answers]
    if "sync-failed" in kinds and True in kinds[kinds.index("sync-failed"):]:
        wrong("after_sync", kinds)
    said = json.dumps(refused) + done.stderr.decode(errors="replace")
    before = len(start[: start.rfind(b"\n") + 1]) if start else 0
    data = path.read_bytes() if path.exists() else b""
    # What was there is there, and a torn line is in the file or beside it.
    if start and not data.startswith(start[:before]):
        wrong("lost", "what was there")
    if start and data[: len(start)] != start and not any(start[before:] in other.read_bytes() for other in place.glob("*torn*")):
        wrong("lost", "the torn line")
    *lines, tail = data[before:].split(b"\n")
    is_known = lambda line: start is not None and line == start[before:]
    seen, bad = collections.Counter(), 0
    for line in lines:
        try:
            seen[json.loads(line).get("uuid")] += 1
        except ValueError:
            bad += not is_known(line)
    rescued = b"".join(other.read_bytes() for other in place.glob("*rescue*"))
    missing = [id for id in acked if id not in seen and id.encode() not in rescued]
    if missing:
        wrong("lost", missing)
    if any(count > 1 for count in seen.values()):
        wrong("doubled", seen)
    if bad:
        wrong("bad_lines", bad)
    if tail and not is_known(tail):
        counts["parts"] += 1
        if "part" not in said and "torn" not in said:
            wrong("untold_parts", len(tail))
    more = [command for command in commands if command["op"] == "append"][:2]
    text = b"".join(json.dumps(command).encode() + b"\n" for command in more)
    if args.naive is None:
        after = subprocess.run(append, input=text, capture_output=True)
        ids = {}
        for line in path.read_bytes().split(b"\n"):
            try:
                ids[json.loads(line).get("uuid")] = True
            except ValueError:
                pass
        new = [one["uuid"] for line in after.stdout.split(b"\n")[:-1] for one in json.loads(line).get("entries", [])]
        if after.returncode or len(new) != 2 or any(id not in ids for id in new) or any(id not in ids and id.encode() not in rescued for id in acked):
            wrong("not_gone_on", after.stderr)
    return True


sys.exit(main())
