#!/usr/bin/env python3
"""tests/remote/two_machines.py BIN [--rounds N] [--seed S] [--rate R] [--naive]

Two machines keep into one archive in a bucket, at the same time, through a proxy that lets requests fail, one with a clock an hour ahead and one an hour
behind, while captures are killed at random moments. A machine is a home folder with a name. Sessions grow, appear, are rewritten, forked and deleted; some ids are on both machines.

While they run, a third machine verifies the archive again and again. In the end the faults stop, and a new machine restores the archive as of each capture. Each
state that a capture with exit code 0 has seen has to be there, with its time, in its order, once, and nothing that never was; of both machines. A day later,
packs that were joined are removed, and a fifth is compared again. Then `prune` runs in copies of the home folder: with sessions that only the other machine captured,
with others that nobody captured, and under the name of a machine that captured nothing.

Prints progress and a summary as one JSON line; exits with 1 when something is wrong. Needs moto, which it installs, libfaketime and the command `zstd`.
`--naive` keeps as a script would: packs, and one catalogue that each machine reads, adds to, and writes without a condition. It has to lose versions."""
import argparse, base64, collections, datetime, hashlib, json, os, pathlib, random, shutil, subprocess, sys, tempfile, threading, time, urllib.error, urllib.parse, urllib.request, uuid

sys.dont_write_bytecode = True
import bucket, proxy  # noqa: E402

PREFIX, HOUR, DAY = "machines/archive", 3600, 86400
FAKETIME = next(iter(sorted(pathlib.Path("/usr").glob("lib*/**/faketime/libfaketimeMT.so.1"))), None)
# What a part of an upload holds at most is less than this, compressed.
BIG = 40 << 20
# A request and all its repetitions end before that; a command that takes longer hangs.
TIMEOUT = 240


class Machine:
    """A home folder, its clock, and the states of the files that captures have seen."""

    def __init__(self, name, place, args, hours=0.0):
        self.name, self.args, self.seconds = name, args, hours * HOUR
        self.home = place / name
        self.root = self.home / ".claude" / "projects"
        self.root.mkdir(parents=True)
        self.pick = random.Random(f"{args.seed} {name}")
        # Of each path the states that a capture began with, in order, and whether one of these captures was acknowledged.
        self.states = collections.defaultdict(list)
        self.total, self.wrong, self.times = collections.Counter(), [], []

    def command(self, *arguments, endpoint, seconds=None):
        seconds = self.seconds if seconds is None else seconds
        keep = {name: os.environ[name] for name in ("PATH", "TMPDIR", "SYSTEMROOT") if name in os.environ}
        env = {**keep, **bucket.KEYS, "HOME": str(self.home), "RUST_BACKTRACE": "1", "TZ": "UTC", "TRANSCRIPT_MACHINE": self.name}
        if seconds:
            env |= {"LD_PRELOAD": str(FAKETIME), "FAKETIME": f"{seconds:+.0f}", "NO_FAKE_STAT": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
        archive = f"s3://{bucket.BUCKET}/{PREFIX}?endpoint={endpoint}"
        return [*self.args.command, *map(str, arguments), "--archive", archive], env

    def run(self, *arguments, **options):
        command, env = self.command(*arguments, **options)
        return subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", timeout=TIMEOUT)

    def files(self):
        return {str(path.relative_to(self.root)): path for path in sorted(self.root.rglob("*")) if path.is_file()}

    def write(self, path, data, append=False):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab" if append else "wb") as file:
            file.write(data)
        # The time of this machine, which the system does not know.
        now = time.time_ns() + int(self.seconds * 10**9)
        os.utime(path, ns=(now, now))

    def lines(self, session, count):
        pick = self.pick
        for _ in range(count):
            text = " ".join(f"{pick.getrandbits(24):x}" for _ in range(pick.choice((4, 30, 300))))
            entry = {"type": "user", "uuid": str(uuid.UUID(int=pick.getrandbits(128))), "parentUuid": None, "sessionId": session, "cwd": "/home/dev", "version": "2.1.119"}
            yield json.dumps({**entry, "timestamp": "2026-11-01T09:00:00.000Z", "message": {"role": "user", "content": text}}).encode() + b"\n"

    def new_session(self, name=None):
        session = name or str(uuid.UUID(int=self.pick.getrandbits(128), version=4))
        project = "-home-dev" if name else self.pick.choice(("-home-dev", "-home-dev-b"))
        return session, self.root / project / f"{session}.jsonl"

    def change(self):
        pick, files = self.pick, self.files()
        for _ in range(pick.choice((1, 1, 2, 4))):
            old = files[pick.choice(sorted(files))] if files and pick.random() < 0.8 else None
            if old is None or not old.exists():
                session, path = self.new_session()
                self.write(path, b"".join(self.lines(session, pick.choice((1, 3, 20)))))
                continue
            what, session = pick.random(), old.stem
            if what < 0.08 and old.name not in self.args.shared:
                old.unlink()
            elif what < 0.14:
                # A copy with another id, as forks are: its lines repeat.
                session, path = self.new_session()
                self.write(path, old.read_bytes().replace(old.stem.encode(), session.encode()))
            elif what < 0.2:
                data = old.read_bytes()
                self.write(old, data[: pick.randrange(len(data) + 1)])
            elif what < 0.26:
                self.write(old.with_suffix("") / "subagents" / "agent-a1.jsonl", b"".join(self.lines(session, 2)), append=True)
            else:
                data = b"".join(self.lines(session, pick.choice((1, 2, 40))))
                self.write(old, data[: pick.randrange(1, len(data))] if pick.random() < 0.1 else data, append=True)

    def snapshot(self):
        return {name: (hashlib.sha256(path.read_bytes()).digest(), path.stat().st_mtime_ns) for name, path in self.files().items()}

    def seen(self, snapshot, is_known):
        for name, state in snapshot.items():
            states = self.states[name]
            last = states.pop() if states and states[-1][0] == state else (state, False)
            states.append((state, is_known or last[1]))

    def keep(self, endpoint, may_kill=True, may_fail=True):
        """Captures; returns the exit code, or nothing if it was killed."""
        snapshot = self.snapshot()
        command, env = self.command("keep", "--root", self.root, "--machine", self.name, endpoint=endpoint)
        usual = sorted(self.times)[len(self.times) // 2] if self.times else 1.0
        patience = self.pick.uniform(0, 1.5 * usual) if may_kill and self.pick.random() < 0.4 else TIMEOUT
        start = time.monotonic()
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        try:
            error, code = process.communicate(timeout=patience)[1], process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            error, code = "", None
            if patience == TIMEOUT:
                self.wrong.append(f"{self.name}: keep takes more than {TIMEOUT} s")
        if code == 0:
            self.times.append(time.monotonic() - start)
        self.total[{None: "killed", 0: "kept"}.get(code, "failed")] += 1
        if code not in (None, 0):
            print(f"{self.name}: exit {code}: {error.strip()[:300]}", flush=True)
        if code not in (None, 0) and not (may_fail and code == 2 and len(error.strip().splitlines()) == 1):
            self.wrong.append(f"{self.name}: keep: exit {code}: {error.strip()[:600]}")
        self.seen(snapshot, code == 0)
        return code

    def rounds(self, endpoint, together):
        try:
            self.all_rounds(endpoint, together)
        except Exception as error:
            # The other machine would wait for this one.
            together.abort()
            self.wrong.append(f"{self.name}: the test stops: {error!r}")

    def all_rounds(self, endpoint, together):
        for number in range(self.args.rounds):
            self.change()
            # Captures that start at the same moment are those that could overwrite each other.
            together.wait()
            if number == self.args.rounds * 9 // 10 and not self.args.naive:
                session, path = self.new_session()
                self.write(path, b"".join(json.dumps({"uuid": str(uuid.UUID(int=at)), "text": base64.b64encode(self.pick.randbytes(60000)).decode()}).encode() + b"\n" for at in range(BIG // 80000)))
            self.keep(endpoint)
            if number % 25 == 24:
                print(f"{self.name}: round {number + 1}: {dict(self.total)}", flush=True)


def stamp(millis):
    return datetime.datetime.fromtimestamp(millis / 1000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{millis % 1000:03}Z"


def read_tree(folder):
    return {str(path.relative_to(folder)): (hashlib.sha256(path.read_bytes()).digest(), path.stat().st_mtime_ns) for path in sorted(folder.rglob("*")) if path.is_file()}


class Judge:
    """A machine that only reads, and what it finds wrong."""

    def __init__(self, place, args, port):
        self.machine, self.port, self.args, self.wrong = Machine("judge", place, args), port, args, []
        self.endpoint = f"http://127.0.0.1:{port}"
        self.total, self.trees = collections.Counter(), {}

    def say(self, text):
        self.wrong.append(text)
        print(f"wrong: {text}", flush=True)

    def run(self, *arguments, codes=(0,), machine=None, seconds=None):
        done = (machine or self.machine).run(*arguments, endpoint=self.endpoint, seconds=seconds)
        if done.returncode not in codes:
            self.say(f"{' '.join(map(str, arguments))}: exit {done.returncode}: {(done.stdout + done.stderr).strip()[:600]}")
        return done

    def verify(self):
        self.total["verified"] += 1
        self.run("verify", "--json")

    def while_running(self, stop):
        while not stop.wait(5):
            status = bucket.request(self.port, "GET", f"{PREFIX}/archive.json")[0]
            if status == 200 and not self.args.naive:
                self.verify()

    def restored(self, name, millis):
        """what the archive had of a machine at a time"""
        folder = self.machine.home / "back" / "projects"
        shutil.rmtree(folder.parent, ignore_errors=True)
        self.run("restore", "--all", "--as-of", stamp(millis), "--to", folder, "--machine", name)
        return read_tree(folder) if folder.exists() else {}

    def captures(self):
        """the times of the captures of each machine, and the number of versions of each file that are the same as the one before"""
        if self.args.naive:
            found = naive_versions(json.loads(bucket.request(self.port, "GET", f"{PREFIX}/catalogue.json")[2]))
        else:
            found = bucket.versions(bucket.packs(self.port, PREFIX))
        times, same = collections.defaultdict(set), collections.Counter()
        for path, versions in found.items():
            _, name, _, below = path.split("/", 3)
            times[name] |= {captured for captured, *_ in versions}
            # One with the state of a file that was left alone for two seconds may follow: later captures do not read the file.
            same[name, below] = sum(one[1:] == other[1:] for one, other in zip(versions, versions[1:]))
        return times, same

    def compare(self, machines):
        """Compares what the archive gives back as of each capture with the states that captures saw."""
        times, same = self.captures()
        for machine in machines:
            found = collections.defaultdict(list)
            for millis in sorted(times[machine.name]):
                self.total["restored"] += 1
                if self.total["restored"] % 100 == 0:
                    print(f"{self.total['restored']} captures restored", flush=True)
                self.trees[machine.name, millis] = tree = self.restored(machine.name, millis)
                for path, state in tree.items():
                    if not found[path] or found[path][-1] != state:
                        found[path].append(state)
            for path in found.keys() - machine.states.keys():
                self.say(f"{machine.name}: {path} never was")
            for path, states in machine.states.items():
                self.compare_file(machine.name, path, states, found[path])
                if same[machine.name, path]:
                    self.total["doubled"] += same[machine.name, path]
                    self.say(f"{machine.name}: {path}: {same[machine.name, path]} versions are the same as the one before")

    def compare_again(self, share):
        """Compares what the archive gives back, as of a share of the captures, with what it gave back before."""
        for (name, millis), tree in sorted(self.trees.items())[::-share]:
            self.total["restored"] += 1
            again = self.restored(name, millis)
            changed = {path for path in tree.keys() | again.keys() if tree.get(path) != again.get(path)}
            if changed:
                self.total["lost"] += len(changed)
                self.say(f"{name}: as of {millis}, {len(changed)} files are others than before packs were removed: {sorted(changed)[0]}")

    def compare_file(self, name, path, states, found):
        at = 0
        for state in found:
            there = [number for number in range(at, len(states)) if states[number][0] == state]
            if not there:
                self.total["strange"] += 1
                return self.say(f"{name}: {path}: a version is no state of the file, or out of order")
            self.lost(name, path, states[at : there[0]])
            at = there[0] + 1
        self.lost(name, path, states[at:])
        self.total["states"] += sum(is_known for _, is_known in states)

    def lost(self, name, path, states):
        lost = sum(is_known for _, is_known in states)
        if lost:
            self.total["lost"] += lost
            self.say(f"{name}: {path}: {lost} acknowledged states are lost")

    def prune(self, machines, place):
        """Prunes copies of the home folder of a machine, two months later."""
        one, other = machines
        for name, may_prune in ((one.name, True), ("never-captured", False)):
            copy = Machine(name, place / f"copy-{may_prune}", self.args)
            shutil.rmtree(copy.root)
            shutil.copytree(one.root, copy.root)
            covered = {path.stem for path in copy.root.glob("*/*.jsonl")} if may_prune else set()
            stays = {path.stem for path in copy.root.glob("*/*.jsonl")} - covered
            # What only the other machine captured: its sessions, and its states of the sessions that both have.
            for path, source in other.files().items():
                target = copy.root / path
                if source.suffix == ".jsonl" and source.parent.parent == other.root and (not target.exists() or target.read_bytes() != source.read_bytes()):
                    target.parent.mkdir(exist_ok=True)
                    shutil.copy2(source, target)
                    stays.add(target.stem)
            for path in sorted(copy.root.glob("*/*.jsonl"))[:3]:
                times = path.stat()
                with open(path, "ab") as file:
                    file.write(b'{"type":"user","uuid":"u","message":{"role":"user","content":"nobody captured this"}}\n')
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
                stays.add(path.stem)
            covered -= stays
            before = read_tree(copy.root)
            arguments = ("prune", "--json", "--root", copy.root)
            dry = self.run(*arguments, machine=copy, seconds=60 * DAY, codes=(0, 1))
            if read_tree(copy.root) != before:
                self.say("a dry run of prune removes files")
            real = self.run(*arguments, "--yes", machine=copy, seconds=60 * DAY, codes=(0, 1))
            there = {path.stem for path in copy.root.glob("*/*.jsonl")}
            for done in (dry, real):
                pruned = {pathlib.Path(one["path"]).stem for one in json.loads(done.stdout or "{}").get("pruned", [])}
                if pruned != covered:
                    self.say(f"prune as {name} says it removes {len(pruned)} sessions, {len(pruned & stays)} that must stay; {len(covered)} have proof")
            if there & covered or stays - there:
                self.say(f"prune as {name}: {len(there & covered)} sessions with proof are left, {len(stays - there)} without proof are removed")
            gone = {path: state for path, state in before.items() if not (copy.root / path).exists()}
            self.total["pruned"] += len(gone)
            self.total["not pruned"] += len(stays)
            if may_prune:
                back = self.restored(name, int((time.time() + 2 * DAY) * 1000))
                if {path: back.get(path) for path in gone} != gone:
                    self.say("the archive does not give back what prune removed")


def naive(arguments):
    """The command as a script would write it: `keep` and `restore`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("keep", "restore"))
    for name in ("archive", "root", "machine", "to", "as-of"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args(arguments)
    endpoint = urllib.parse.parse_qs(urllib.parse.urlsplit(args.archive).query)["endpoint"][0]
    url = f"{endpoint}/{bucket.BUCKET}/{PREFIX}"

    def ask(method, name, body=None):
        for pause in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, None):
            try:
                with urllib.request.urlopen(urllib.request.Request(f"{url}/{name}", body, bucket.SIGNED, method=method), timeout=60) as answer:
                    return answer.read()
            except OSError as error:
                if isinstance(error, urllib.error.HTTPError) and error.code == 404:
                    return None
                if pause is None:
                    sys.exit("the server fails")
                # libfaketime breaks `time.sleep`.
                threading.Event().wait(pause)

    catalogue = json.loads(ask("GET", "catalogue.json") or "{}")
    if args.what == "keep":
        root, now = pathlib.Path(args.root), int(time.time() * 1000)
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            name, data, modified = f"machines/{args.machine}/projects/{path.relative_to(root)}", path.read_bytes(), path.stat().st_mtime_ns
            digest = hashlib.sha256(data).hexdigest()
            known = catalogue.setdefault(name, [])
            if not known or known[-1][1:] != [digest, modified]:
                ask("PUT", f"packs/{digest}", data)
                known.append([max([now, *(one[0] + 1 for one in known[-1:])]), digest, modified])
        ask("PUT", "catalogue.json", json.dumps(catalogue).encode())
    else:
        until = datetime.datetime.fromisoformat(getattr(args, "as_of").replace("Z", "+00:00")).timestamp() * 1000
        for name, known in catalogue.items():
            _, machine, _, below = name.split("/", 3)
            early = [one for one in known if one[0] <= until + 0.5]
            if machine == args.machine and early:
                path = pathlib.Path(args.to, below)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(ask("GET", f"packs/{early[-1][1]}"))
                os.utime(path, ns=(early[-1][2],) * 2)
    return 0


def naive_versions(catalogue):
    return {path: [(captured, digest, modified) for captured, digest, modified in known] for path, known in catalogue.items()}


def main():
    if sys.argv[1:2] == ["--as-naive"]:
        return naive(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", nargs="?", default="target/debug/transcript")
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.06, help="the share of requests that fail")
    parser.add_argument("--naive", action="store_true")
    args = parser.parse_args()
    if FAKETIME is None or shutil.which("zstd") is None:
        print("skipped: no libfaketime or no zstd")
        return 0
    args.command = [sys.executable, os.path.abspath(__file__), "--as-naive"] if args.naive else [os.path.abspath(args.bin)]
    pick = random.Random(args.seed)
    shared = [str(uuid.UUID(int=pick.getrandbits(128), version=4)) for _ in range(3)]
    args.shared = {f"{one}.jsonl" for one in shared}
    with tempfile.TemporaryDirectory() as folder, bucket.Server() as server, proxy.Proxy(server.port, args.seed, args.rate) as between:
        place = pathlib.Path(folder).resolve()
        machines = [Machine("desk", place, args, 1), Machine("laptop", place, args, -1)]
        judge = Judge(place, args, server.port)
        # A home folder that was copied: the same sessions on both.
        for session in shared:
            path = machines[0].new_session(session)[1]
            machines[0].write(path, b"".join(machines[0].lines(session, 5)))
            copied = machines[1].root / path.relative_to(machines[0].root)
            copied.parent.mkdir(exist_ok=True)
            shutil.copy2(path, copied)
        start, stop = time.monotonic(), threading.Event()
        together = threading.Barrier(len(machines))
        threads = [threading.Thread(target=machine.rounds, args=(between.endpoint, together)) for machine in machines]
        reader = threading.Thread(target=judge.while_running, args=(stop,))
        for thread in (reader, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        stop.set()
        reader.join()
        seconds = time.monotonic() - start
        counts = between.counts()
        for machine in machines:
            machine.keep(judge.endpoint, may_kill=False, may_fail=False)
        print(f"{sum(counts['requests'].values())} requests, {sum(counts['faults'].values())} faults, {seconds:.0f} s", flush=True)
        judge.compare(machines)
        if not args.naive:
            judge.verify()
            kept = bucket.objects(server.port, f"{PREFIX}/packs/")
            for machine in machines:
                machine.seconds += DAY + HOUR
                machine.keep(judge.endpoint, may_kill=False, may_fail=False)
            left = bucket.objects(server.port, f"{PREFIX}/packs/")
            judge.total["packs removed"] = len(kept.keys() - left.keys())
            judge.verify()
            judge.compare_again(5)
            judge.prune(machines, place)
        packs = len(bucket.objects(server.port, f"{PREFIX}/packs/"))
        total = judge.total + machines[0].total + machines[1].total
        wrong = judge.wrong + machines[0].wrong + machines[1].wrong
        faults = collections.Counter()
        for name, count in counts["faults"].items():
            faults[name.split()[0]] += count
        for one in machines[0].wrong + machines[1].wrong:
            print(f"wrong: {one}", flush=True)
        summary = {"rounds": args.rounds, "seed": args.seed, "seconds": round(seconds), "requests": sum(counts["requests"].values()), "faults": dict(faults), "packs": packs, "unfinished uploads": bucket.uploads(server.port)}
        print(json.dumps({**summary, **total, "lost": total["lost"], "doubled": total["doubled"], "wrong": len(wrong)}))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
