#!/usr/bin/env python3
"""Cuts the power of real file systems while `transcript` writes, and looks for what it had said to be durable. Uses nothing of this project but the
command.

    tests/power_cut.py [--bin BINARY] [--cuts N] [--on xfs ext4] [--only KIND ...] [--naive]

Each file system is in a file (a loop device). In each round it is mounted, a command writes to it in a loop, and at a random moment the shutdown ioctl
of the kernel cuts it off: what was not written to the device by then is lost, as in a power cut. It is mounted again, which replays its journal, and then:

  append    every entry that was acknowledged with `--sync each` is in the session once, and only the last line may be torn; the next
            `append` goes on
  fork      a fork that ended with exit code 0 is whole, and no other one is there in part
  repair    the name leads to the old or to the new file, as the last `--keep-id` or `--undo` that ended says; the old file is whole under
            one of its names; the same command works again
  move      each session is whole at the old or the new place, as the last `move` or `--undo` that ended says, and the same command finishes
  archive   what was captured by a `keep` that ended comes back, the archive has no damage, and of a `restore` no file is there in part

Needs root and loop devices. `--naive` appends without a sync, which has to lose entries, and the exit code is 1."""
import argparse, collections, fcntl, json, os, pathlib, random, re, shutil, struct, subprocess, sys, tempfile, threading, time, uuid

ID = "1999463e-ee08-4b08-99d5-2d9a36fd8293"
SHUTDOWN = 0x8004587D  # XFS_IOC_GOINGDOWN, which is EXT4_IOC_SHUTDOWN, too
NO_LOG_FLUSH = 2
# More than a capture leaves free.
SIZES = {"xfs": 400 << 20, "ext4": 300 << 20}
TORN = b'{"type":"pr-link","prNu\n'


def entry(name, parent, session=ID, **more):
    line = {"parentUuid": parent, "isSidechain": False, "type": "user", "message": {"role": "user", "content": name}, "uuid": f"u-{name}", "sessionId": session,
            "timestamp": "2026-01-01T00:00:00.000Z", **more}
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def damaged():
    return entry("a", None) + TORN + entry("b", "u-a") + entry("c", "u-gone") + entry("d", "u-c")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)


class Round:
    """A command that runs in a loop until the power is cut, and what it said."""
    count = collections.Counter()

    def __init__(self, args, place):
        self.args, self.place = args, place
        self.child, self.is_cut, self.done = None, False, []
        self.env = dict(os.environ, HOME=str(place), CLAUDE_CONFIG_DIR=str(place), XDG_DATA_HOME=str(place / "data"), XDG_CACHE_HOME="/nonexistent",
                        TRANSCRIPT_ARCHIVE=str(place / "archive"))

    def run(self, *arguments):
        """Runs the command. Returns what it printed if it ended with exit code 0 before the cut, else `None`."""
        self.child = subprocess.Popen([self.args.bin, *map(str, arguments)], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        out = self.child.communicate()[0]
        return out if self.child.returncode == 0 and not self.is_cut else None

    def loop(self):
        while not self.is_cut:
            try:
                self.step()
            except OSError:
                return

    def stop(self):
        if self.child and self.child.poll() is None:
            self.child.kill()

    def again(self, *arguments):
        return subprocess.run([self.args.bin, *map(str, arguments)], env=self.env, capture_output=True)


class Append(Round):
    def prepare(self):
        self.path = self.place / f"{ID}.jsonl"

    def loop(self):
        command = [self.args.bin, "append", self.path, "--create", "--sync", "each"]
        if self.args.naive:
            command = [sys.executable, __file__, "--naive-writer", str(self.path)]
        self.child = subprocess.Popen(command, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if self.is_cut:
            # The cut came before the process: nobody else ends it, and it answers each command with an error.
            self.child.kill()
        pick = random.Random(self.place.name)

        def feed():
            try:
                while True:
                    text = "x" * pick.choice([1, 30, 300, 999, 5000])
                    self.child.stdin.write(json.dumps({"op": "append", "user": text}).encode() + b"\n")
                    self.child.stdin.flush()
            except (BrokenPipeError, ValueError):
                pass
        threading.Thread(target=feed, daemon=True).start()
        for line in self.child.stdout:
            if not line.endswith(b"\n"):
                break
            answer = json.loads(line)
            if answer["ok"] and not self.is_cut:
                self.done += [one["uuid"] for one in answer["entries"]]

    def check(self):
        text = self.path.read_bytes() if self.path.exists() else b""
        *lines, tail = text.split(b"\n")
        seen, bad = collections.Counter(), 0
        for line in lines:
            try:
                seen[json.loads(line).get("uuid")] += 1
            except ValueError:
                bad += 1
        self.count.update(durable=len(self.done), torn=bool(tail), lost=sum(id not in seen for id in self.done), doubled=sum(count > 1 for count in seen.values()))
        lost = [number for number, id in enumerate(self.done) if id not in seen]
        if lost:
            print(f"  {self.place.name}: lost {len(lost)} of {len(self.done)}, the first is number {lost[0]}; {len(text)} bytes, {len(lines)} lines", flush=True)
        # What a power cut leaves of unsynced bytes may end with a line feed.
        self.count["bad_lines"] += max(0, bad - 1)
        if self.args.naive:
            return
        more = subprocess.run([self.args.bin, "append", self.path, "--create"], input=b'{"op":"append","user":"more"}\n', env=self.env, capture_output=True)
        after = self.path.read_bytes()
        if more.returncode or not after.startswith(text[: len(text) - len(tail)]):
            self.wrong(f"it does not go on: {more.stderr}")

    def wrong(self, what):
        self.count["wrong"] += 1
        print(f"  {type(self).__name__}: {what}", flush=True)


class Fork(Append):
    def prepare(self):
        self.path = self.place / f"{ID}.jsonl"
        self.lines = 200
        write(self.path, b"".join(entry(str(number), f"u-{number - 1}" if number else None) for number in range(self.lines)))

    loop = Round.loop

    def step(self):
        out = self.run("fork", self.path, "--json")
        if out is not None:
            self.done.append(pathlib.Path(json.loads(out)["path"]).name)

    def check(self):
        forks = [path for path in self.place.glob("*.jsonl") if path != self.path]
        self.count.update(forks=len(self.done), lost=len(set(self.done) - {path.name for path in forks}))
        for path in forks:
            lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
            if sum(line["type"] == "user" for line in lines) != self.lines:
                self.wrong(f"a fork is there in part: {len(lines)} lines")
        if self.again("fork", self.path).returncode:
            self.wrong("the next fork fails")


class Repair(Append):
    def prepare(self):
        self.path = self.place / f"{ID}.jsonl"
        self.old, self.new = damaged(), None
        write(self.path, self.old)
        self.run("repair", self.path, "--keep-id")
        self.new = self.path.read_bytes()
        self.run("repair", self.path, "--undo")
        self.is_repaired = self.is_begun = False

    loop = Round.loop

    def step(self):
        self.is_begun = True
        if self.run("repair", self.path, "--undo" if self.is_repaired else "--keep-id") is None:
            raise OSError
        self.is_begun, self.is_repaired = False, not self.is_repaired
        self.done.append(self.is_repaired)

    def check(self):
        self.count["repairs"] += len(self.done)
        found = self.path.read_bytes() if self.path.exists() else None
        last = self.new if self.is_repaired else self.old
        allowed = [self.old, self.new] if self.is_begun else [last]
        if found not in allowed:
            self.count["lost"] += 1
            self.wrong(f"the name leads to another file, {found and len(found)} bytes")
        if self.old not in [path.read_bytes() for path in self.place.iterdir() if path.is_file()]:
            self.count["lost"] += 1
            self.wrong("the old file has no name")
        for command, wanted in (["--keep-id"], self.new), (["--undo"], self.old):
            done = self.again("repair", self.path, *command)
            if self.path.read_bytes() != wanted:
                self.wrong(f"{command} afterwards: {done.stderr}")
        strange = [path.name for path in self.place.iterdir() if re.search(r"(repair|undo|return)ing-", path.name)]
        if strange:
            self.wrong(f"left: {strange}")


class Move(Append):
    def prepare(self):
        self.root = self.place / "projects"
        self.old = {f"{ID}.jsonl": entry("a", None, cwd="/old"), f"{ID}/subagents/agent-a1.jsonl": entry("x", None), f"{ID}/tool-results/r.txt": b"result"}
        for name, text in self.old.items():
            write(self.root / "-old" / name, text)
        self.is_moved = self.is_begun = False

    loop = Round.loop

    def command(self, is_back):
        return ["move", "/old", "/new", "--root", self.root, *(["--undo"] if is_back else [])]

    def step(self):
        self.is_begun = True
        if self.run(*self.command(self.is_moved)) is None:
            raise OSError
        self.is_begun, self.is_moved = False, not self.is_moved
        self.done.append(self.is_moved)

    def is_at(self, project):
        files = {name: self.root / project / name for name in self.old}
        return all(path.exists() and path.read_bytes().startswith(self.old[name]) for name, path in files.items())

    def check(self):
        self.count["moves"] += len(self.done)
        at = [project for project in ("-old", "-new") if self.is_at(project)]
        if not at or not self.is_begun and at != ["-new" if self.is_moved else "-old"]:
            self.count["lost"] += 1
            self.wrong(f"whole at {at}: {sorted(str(path) for path in self.root.rglob('*'))}")
        if self.again(*self.command(False)).returncode not in (0, 1) or not self.is_at("-new") or self.is_at("-old"):
            self.wrong("the same command does not finish")


class Archive(Append):
    def prepare(self):
        self.root, self.numbers, self.kept, self.restored = self.place / "projects", 0, b"", {}
        self.path = self.root / "-p" / f"{ID}.jsonl"
        write(self.path, b"")
        self.again("keep", "--root", self.root)

    loop = Round.loop

    def step(self):
        lines = b""
        for number in range(random.choice([1, 5, 500])):
            lines += entry(str(self.numbers), f"u-{self.numbers - 1}" if self.numbers else None)
            self.numbers += 1
        with open(self.path, "ab") as file:
            file.write(lines)
            os.fsync(file.fileno())
        text = self.path.read_bytes()
        if self.run("keep", "--root", self.root) is None:
            raise OSError
        self.done.append(len(text))
        self.kept = text
        back = self.place / f"back{len(self.done)}" / "projects"
        self.restored[back / "-p" / self.path.name] = text, self.run("restore", "--all", "--to", back) is not None

    def check(self):
        self.count["captures"] += len(self.done)
        verified = self.again("verify", "--archive")
        if verified.returncode:
            self.wrong(f"damage: {verified.stdout}{verified.stderr}")
        for path, (text, is_done) in self.restored.items():
            self.count["restores"] += is_done
            if path.exists() and path.read_bytes() != text or is_done and not path.exists():
                self.count["lost"] += 1
                self.wrong(f"not restored as it was captured: {path}")
        back = self.place / "check" / "projects"
        done = self.again("restore", "--all", "--to", back)
        found = back / "-p" / self.path.name
        text = found.read_bytes() if found.exists() else b""
        if not text.startswith(self.kept):
            self.count["lost"] += 1
            self.wrong(f"{len(text)} bytes come back of {len(self.kept)}: {done.stderr}")


KINDS = dict(append=Append, fork=Fork, repair=Repair, move=Move, archive=Archive)


def naive_writer(path):
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for command in sys.stdin:
        entry = {"uuid": str(uuid.uuid4()), "text": json.loads(command)["user"]}
        os.write(file, json.dumps(entry).encode() + b"\n")
        os.write(1, json.dumps({"ok": True, "entries": [{"uuid": entry["uuid"]}]}).encode() + b"\n")


class Disk:
    def __init__(self, system, folder):
        self.system, self.image, self.place = system, folder / f"{system}.img", folder / system
        self.place.mkdir()
        with open(self.image, "wb") as file:
            file.truncate(SIZES[system])
        subprocess.run([f"mkfs.{system}", "-q", self.image], check=True)

    def mount(self):
        subprocess.run(["mount", "-o", "loop", self.image, self.place], check=True)

    def unmount(self):
        for _ in range(100):
            if subprocess.run(["umount", self.place], capture_output=True).returncode == 0:
                return
            time.sleep(0.05)
        raise OSError(f"{self.place} stays mounted")

    def cut(self):
        place = os.open(self.place, os.O_RDONLY)
        fcntl.ioctl(place, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        os.close(place)


def cut(args, disk, kind, number, pick):
    disk.mount()
    place = disk.place / f"{kind.__name__}{number}"
    try:
        place.mkdir()
        round = kind(args, place)
        round.prepare()
        # Nothing but what the command does is at risk.
        subprocess.run(["sync", "-f", place], check=True)
        worker = threading.Thread(target=round.loop)
        worker.start()
        wanted, end = pick.choice([0, 1, 2, 5, 20]), time.time() + 5
        while len(round.done) < wanted and time.time() < end and worker.is_alive():
            time.sleep(0.002)
        # In the middle of a later one.
        time.sleep(pick.random() * pick.choice([0.01, 0.1, 0.3]))
        # A sync that runs at this moment may succeed although nothing reached the device, also that of a plain `fdatasync` on ext4 and xfs. After a
        # power cut no program learns of it: only earlier answers count.
        round.is_cut = True
        disk.cut()
        round.stop()
        worker.join()
    finally:
        disk.unmount()
    disk.mount()
    try:
        round.check()
        shutil.rmtree(place)
    finally:
        disk.unmount()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/debug/transcript")
    parser.add_argument("--cuts", type=int, default=50, help="of each file system")
    parser.add_argument("--on", nargs="*", default=["xfs", "ext4"])
    parser.add_argument("--only", nargs="*", default=list(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--naive", action="store_true")
    parser.add_argument("--naive-writer", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.naive_writer:
        return naive_writer(args.naive_writer)
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control"):
        return print("skipped: needs root and loop devices")
    args.bin = os.path.abspath(args.bin)
    kinds = ["append"] if args.naive else args.only
    pick, total = random.Random(args.seed), collections.Counter()
    for system in args.on:
        if shutil.which(f"mkfs.{system}") is None:
            print(f"{system} skipped: no mkfs.{system}")
            continue
        # The device is in memory, if it can: what is cut off is what did not reach it.
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            disk = Disk(system, pathlib.Path(folder).resolve())
            Round.count = collections.Counter()
            for number in range(args.cuts):
                name = kinds[number % len(kinds)]
                cut(args, disk, KINDS[name], number, pick)
                Round.count.update(cuts=1, **{f"cuts_{name}": 1})
            print(f"{system}:", *(f"{name}={count}" for name, count in sorted(Round.count.items())), flush=True)
            total.update(Round.count)
    names = ["cuts", "durable", "torn", "forks", "repairs", "moves", "captures", "restores", "lost", "doubled", "bad_lines", "wrong"]
    print("all:", *(f"{name}={total[name]}" for name in names))
    return int(any(total[name] for name in ("lost", "doubled", "bad_lines", "wrong")))


sys.exit(main())
