#!/usr/bin/env python3
"""Measures an archive in a bucket beside the local archive and beside restic on the same server: time, processor time, peak memory, requests and bytes.

    experiments/remote_speed.py BINARY TREE [--s3s PROGRAM] [--rounds N] [--sessions N]

TREE is a folder of projects. The server is s3s-fs, which keeps objects as files (`--s3s`, from `cargo install s3s-fs --features binary`), or moto, which is good for the
counts but slow. Everything goes through a proxy that counts, also what restic asks. restic is taken from PATH and omitted if it is missing; it
compresses by its default. "Other machine" has no cache of the archive, as after a new installation; "this machine" has captured it. Times are medians of the rounds; a peak below that of Python, some 28 MiB, cannot be seen. Prints a table in
Markdown; exits with 1 when a command needs more requests than it may: three if nothing changed, four for a message, two for a list."""
import argparse, collections, json, os, pathlib, random, shutil, statistics, subprocess, sys, tempfile, time, uuid

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "remote"))
import bucket, proxy  # noqa: E402

GOALS = {"nothing changed": 3, "one message, this machine": 4, "list of {}, this machine": 2}
LINE = b'{"type":"user","uuid":"%s","sessionId":"%s","message":{"role":"user","content":"one more line"}}\n'
Cost = collections.namedtuple("Cost", "seconds processor memory requests received sent kinds")


class Place:
    """A scratch folder with the home folders of machines, and the server with its proxy."""

    def __init__(self, folder, binary, tree, server, between):
        self.folder, self.binary, self.tree, self.server, self.between = folder, binary, tree, server, between

    def measure(self, command, home, codes=(0,), **variables):
        """Runs a command; returns its output and what it took."""
        env = {"PATH": os.environ["PATH"], **bucket.KEYS, "HOME": str(self.folder / home), "TZ": "UTC", "TRANSCRIPT_MACHINE": home.split("-")[0], **variables}
        (self.folder / home).mkdir(exist_ok=True)
        self.between.reset()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            start = time.monotonic()
            process = subprocess.Popen([str(part) for part in command], env=env, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=errors)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.monotonic() - start
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0), errors.seek(0)
            if process.returncode not in codes:
                sys.exit(f"{' '.join(map(str, command))}: exit {process.returncode}: {errors.read().decode()[-600:]}")
            output = out.read()
        counts = self.between.counts()
        total = lambda name: sum(counts[name].values())
        return output, Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, total("requests"), total("received"), total("sent"), counts["requests"])

    def transcript(self, archive, root, *arguments, home="this", codes=(0,)):
        # Without a root, all sessions of the archive are meant.
        of_root = ["--root", root] if root else []
        return self.measure([self.binary, *arguments, *of_root, "--archive", archive], home, codes)

    def restic(self, *arguments, home="this", repository="restic"):
        url = f"s3:{self.between.endpoint}/{bucket.BUCKET}/{repository}"
        return self.measure(["restic", "-q", "-r", url, *arguments], home, RESTIC_PASSWORD="x", RESTIC_CACHE_DIR=str(self.folder / f"{home}-restic"))

    def forget(self, *homes):
        for home in homes:
            for path in (self.folder / home, self.folder / f"{home}-restic", self.folder / "back"):
                shutil.rmtree(path, ignore_errors=True)


def sessions(tree):
    return sorted(path for path in tree.glob("*/*.jsonl"))


def grow(path):
    """Appends to a session; returns a function that undoes it."""
    state = path.stat()
    with open(path, "ab") as file:
        for number in range(20):
            file.write(LINE % (str(uuid.UUID(int=number + 1)).encode(), path.stem.encode()))

    def undo():
        os.truncate(path, state.st_size)
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))

    return undo


def message_of(path):
    """The uuid of a message in the middle of a session, and a text in it."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    messages = [line for line in lines if line.get("type") == "assistant"]
    return messages[len(messages) // 2]["uuid"]


def compare_trees(tree, back):
    for path in sessions(tree):
        # The archive also has the version that grew.
        restored = back / path.relative_to(tree)
        if not restored.exists() or not restored.read_bytes().startswith(path.read_bytes()):
            sys.exit(f"{restored} is not what was captured")


def many_small(folder, count):
    pick = random.Random(7)
    for number in range(count):
        session = str(uuid.UUID(int=pick.getrandbits(128), version=4))
        path = folder / f"-p{number % 50}" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        entry = {"type": "user", "uuid": str(uuid.UUID(int=pick.getrandbits(128))), "parentUuid": None, "sessionId": session, "cwd": "/home/dev", "version": "2.1.119"}
        text = " ".join(f"{pick.getrandbits(20):x}" for _ in range(20))
        path.write_text(json.dumps({**entry, "timestamp": "2026-03-01T09:00:00.000Z", "message": {"role": "user", "content": text}}) + "\n")
        os.utime(path, (1.77e9, 1.77e9))
    return folder


def of_transcript(place, archive, small_archive, small, wanted, message):
    """the costs of each row for an archive"""
    costs = {}
    costs["capture"] = place.transcript(archive, place.tree, "keep", "-q")[1]
    costs["nothing changed"] = place.transcript(archive, place.tree, "keep", "-q")[1]
    undo = grow(wanted)
    try:
        costs["one session grew"] = place.transcript(archive, place.tree, "keep", "-q")[1]
    finally:
        undo()
    content = wanted.read_bytes()
    for home, whose in (("this", "this machine"), ("other", "other machine")):
        place.forget("other", "back")
        back = place.folder / "back" / "projects"
        costs[f"restore of one, {whose}"] = place.transcript(archive, None, "restore", "-q", wanted.stem, "--to", back, home=home)[1]
        restored = next(back.glob("*/*.jsonl")).read_bytes()
        if not restored.startswith(content):
            sys.exit("the restored session has other bytes")
        place.forget("other", "back")
        output, costs[f"one message, {whose}"] = place.transcript(archive, None, "replay", wanted.stem, "--at", message, "-n", "1", "--json", home=home)
        if message.encode() not in output:
            sys.exit("the message is not in the output")
        place.forget("other", "back")
        costs[f"restore of all, {whose}"] = place.transcript(archive, None, "restore", "-q", "--all", "--to", back, home=home)[1]
        compare_trees(place.tree, back)
        place.forget("other", "back")
        output, costs[f"search --all, {whose}"] = place.transcript(archive, None, "search", "--all", "HashMap await", "--count", home=home, codes=(0, 1))
        place.forget("other", "back")
    if small:
        count = len(sessions(small))
        place.transcript(small_archive, small, "keep", "-q")
        for home, whose in (("this", "this machine"), ("other", "other machine")):
            output, costs[f"list of {count:,}, {whose}"] = place.transcript(small_archive, None, "list", "--archived", "--json", home=home)
            if output.count(b'"sessionId"') != count:
                sys.exit(f"the list has {output.count(b'sessionId')} sessions")
            place.forget("other", "back")
    return costs


def of_restic(place, repository, small_repository, small, wanted, message):
    costs, name = {}, str(wanted.relative_to(place.tree))
    run = lambda *arguments, **options: place.restic(*arguments, repository=repository, **options)
    run("init")
    backup = lambda tree, repository: place.restic("backup", tree, repository=repository)[1]
    costs["capture"] = backup(place.tree, repository)
    costs["nothing changed"] = backup(place.tree, repository)
    undo = grow(wanted)
    try:
        costs["one session grew"] = backup(place.tree, repository)
    finally:
        undo()
    for home, whose in (("this", "this machine"), ("other", "other machine")):
        place.forget("other", "back")
        costs[f"restore of one, {whose}"] = run("restore", "latest", "--include", f"**/{name}", "--target", place.folder / "back", home=home)[1]
        if not any((place.folder / "back").rglob(wanted.name)):
            sys.exit("restic restored nothing")
        place.forget("other", "back")
        costs[f"restore of all, {whose}"] = run("restore", "latest", "--target", place.folder / "back", home=home)[1]
        compare_trees(place.tree, place.folder / "back" / place.tree.relative_to("/"))
        place.forget("other", "back")
        output, costs[f"one message, {whose}"] = run("dump", "latest", str(wanted), home=home)
        if message.encode() not in output:
            sys.exit("the message is not in the output of restic")
    if small:
        count = len(sessions(small))
        place.restic("init", repository=small_repository)
        backup(small, small_repository)
        for home, whose in (("this", "this machine"), ("other", "other machine")):
            place.forget("other")
            output, costs[f"list of {count:,}, {whose}"] = place.restic("ls", "latest", home=home, repository=small_repository)
            if output.count(b".jsonl") != count:
                sys.exit("restic lists another number of files")
    return costs


def cell(costs):
    if not costs:
        return "-"
    middle = lambda name: statistics.median(getattr(cost, name) for cost in costs)
    seconds = middle("seconds")
    text = f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
    text += f", {middle('processor'):.2f} s CPU, {max(cost.memory for cost in costs):.0f} MiB"
    if any(cost.requests for cost in costs):
        requests = max(cost.requests for cost in costs)
        text += f"; {requests} requests, {middle('received') / 1e6:.2f} MB down, {middle('sent') / 1e6:.2f} MB up"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="the command transcript")
    parser.add_argument("tree", type=pathlib.Path, help="a folder of projects")
    parser.add_argument("--s3s", metavar="PROGRAM")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=10_000, help="the number of small sessions to list; 0 for none")
    parser.add_argument("--only", choices=("bucket", "local", "restic"), action="append")
    args = parser.parse_args()
    binary, tree = os.path.abspath(args.binary), args.tree.resolve()
    with tempfile.TemporaryDirectory() as scratch, bucket.Server(args.s3s) as server, proxy.Proxy(server.port) as between:
        place = Place(pathlib.Path(scratch).resolve(), binary, tree, server, between)
        small = many_small(place.folder / "small", args.sessions) if args.sessions else None
        found = sessions(tree)
        wanted = sorted(found, key=lambda path: path.stat().st_size)[len(found) * 3 // 4]
        message = message_of(wanted)
        raw = sum(path.stat().st_size for path in found)
        programs = {
            "bucket": lambda number: of_transcript(place, *(f"s3://{bucket.BUCKET}/{name}{number}?endpoint={between.endpoint}" for name in ("archive", "small")), small, wanted, message),
            "local": lambda number: of_transcript(place, *(place.folder / f"{name}{number}" for name in ("archive", "small")), small, wanted, message),
            "restic": lambda number: of_restic(place, f"restic{number}", f"restic-small{number}", small, wanted, message),
        }
        if not shutil.which("restic"):
            del programs["restic"]
        table = collections.defaultdict(lambda: collections.defaultdict(list))
        chosen = [name for name in programs if not args.only or name in args.only]
        for number in range(args.rounds):
            for name in chosen:
                place.forget("this", "other")
                for row, cost in programs[name](number).items():
                    table[row][name].append(cost)
                print(f"round {number + 1}: {name}", file=sys.stderr, flush=True)
        names = {"bucket": "transcript, bucket", "local": "transcript, folder", "restic": "restic, bucket"}
        print(f"{raw / 1e6:.0f} MB in {len(found):,} sessions; {wanted.stat().st_size / 1e6:.2f} MB is the session that is restored; server {'s3s-fs' if args.s3s else 'moto'}\n")
        print(f"| | {' | '.join(names[name] for name in chosen)} |\n|{' --- |' * (len(chosen) + 1)}")
        for row, costs in table.items():
            print(f"| {row} | {' | '.join(cell(costs[name]) for name in chosen)} |")
        too_many = []
        for row, goal in GOALS.items():
            row = row.format(f"{args.sessions:,}")
            for cost in table[row]["bucket"]:
                if cost.requests > goal:
                    too_many.append(f"{row}: {cost.requests} requests instead of {goal}: {dict(cost.kinds)}")
        for text in sorted(set(too_many)):
            print(f"\ntoo many: {text}")
    return int(bool(too_many))


if __name__ == "__main__":
    sys.exit(main())
