#!/usr/bin/env python3
"""Fails each system call of every command that writes, in turn, and looks for what was lost or left over. Uses nothing of this project but the
command.

    tests/every_fault.py [--bin BINARY] [--on FOLDER ...] [--bindfs] [--only NAME ...] [--errors EIO ...] [--every N]

strace makes the nth call of one kind fail, for each kind, n and error; with `--done` the command is killed right after the call instead of
being told of an error. Each run starts with the same files, on each of the folders (name one on a disk and one in memory) and, with
`--bindfs`, on a FUSE file system that knows no flag of renameat2. Whatever fails:

  lost      every file that was there is there whole, under its name, or under one that the command is known to give it
  left      after an error there is no file that a run without one does not make, and none of a session that was not written, unless the
            error names it, or the failed call is a removal; and the same command, run again, removes it
  again     the same command then does its work

Needs strace; `--bindfs` needs bindfs; prune needs faketime. `--naive` runs a repair as people write it, which has to lose something."""
import argparse, collections, itertools, json, os, pathlib, re, shutil, subprocess, sys, tempfile, time

ID, OTHER = "1999463e-ee08-4b08-99d5-2d9a36fd8293", "2999463e-ee08-4b08-99d5-2d9a36fd8293"
# A process without memory, threads, signals or program code does nothing.
NOT_FAILED = set("""arch_prctl brk clone clone3 execve exit exit_group futex getrandom mmap mprotect munmap mremap madvise poll prlimit64
    restart_syscall rseq rt_sigaction rt_sigprocmask rt_sigreturn sched_getaffinity sched_yield set_robust_list set_tid_address sigaltstack
    gettid getpid getppid tgkill kill clock_nanosleep nanosleep wait4 pipe2 close geteuid getuid sysinfo uname""".split())
REMOVALS = {"unlink", "unlinkat", "rmdir"}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def entry(name, parent, session=ID, **more):
    message = {"role": "user", "content": name}
    line = {"parentUuid": parent, "isSidechain": False, "type": "user", "message": message, "uuid": f"{len(name):08x}-0000-4000-8000-{name.encode().hex():0>12}",
            "sessionId": session, "timestamp": "2026-01-01T00:00:00.000Z", **more}
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def uuid_of(name):
    return json.loads(entry(name, None))["uuid"]


def talk(*names, session=ID, **more):
    parents = [None, *map(uuid_of, names)]
    return b"".join(entry(name, parent, session, **more) for name, parent in zip(names, parents))


def damaged(**more):
    """A session with a torn line in its middle and a parent that nobody wrote."""
    return talk("a", **more) + b'{"type":"pr-link","prNu\n' + entry("b", uuid_of("a"), **more) + entry("c", uuid_of("gone"), **more)


class Case:
    """A command, and files in a folder, which it is run in."""
    # Files that a run may take away, as they are elsewhere then.
    moves = False

    def __init__(self, binary):
        self.binary = binary

    def files(self):
        return {f"{ID}.jsonl": damaged(), f"{ID}/subagents/agent-a1.jsonl": talk("x", isSidechain=True), f"{ID}/tool-results/r.txt": b"result\n"}

    def prepare(self, folder):
        for name, text in self.files().items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
            os.utime(path, ns=(10**18, 10**18))

    def command(self, folder):
        raise NotImplementedError

    def environment(self, folder):
        return dict(os.environ, HOME=str(folder), XDG_DATA_HOME=str(folder / "data"), XDG_CACHE_HOME="/nonexistent", CLAUDE_CONFIG_DIR=str(folder), NO_COLOR="1")

    def homes(self, name):
        """The names under which a file that was there may be afterwards."""
        return [name]

    def is_whole(self, name, before, after):
        """Whether the bytes of a file that was there are all there."""
        return before == after

    def look(self, folder):
        """What is wrong besides."""

    def left(self, before, after, success):
        """The names of files that a run with an error left over."""
        strange = [name for name in after if name not in before and plain(name) not in success]
        # A copy that is not complete, or what lies beside a session that was not written.
        main = self.main(after, before)
        if main is None:
            strange += [name for name in after if name not in before and name not in strange]
        return strange

    def main(self, after, before):
        """The new file without which the others are nothing."""
        new = [name for name in after if name not in before and "/" not in name and name.endswith(self.end)]
        return new[0] if new else None

    end = ".jsonl"


def plain(name):
    """A name with another word for each id that is made anew, and for numbers."""
    name = UUID.sub(lambda found: found[0] if found[0] in (ID, OTHER) else "ID", name)
    return re.sub(r"[0-9a-f]{32}", "HASH", name)


class RepairInPlace(Case):
    def command(self, folder):
        return [self.binary, "repair", f"{ID}.jsonl", "--keep-id"]

    def homes(self, name):
        return [name, f"{name}.before-repair"] if name == f"{ID}.jsonl" else [name]

    def main(self, after, before):
        kept = f"{ID}.jsonl.before-repair"
        return kept if kept in after else None


class Undo(RepairInPlace):
    def prepare(self, folder):
        super().prepare(folder)
        subprocess.run(super().command(folder), cwd=folder, env=self.environment(folder), check=True, capture_output=True)

    def command(self, folder):
        return [self.binary, "repair", f"{ID}.jsonl", "--undo"]

    def homes(self, name):
        main = f"{ID}.jsonl"
        return [main, f"{main}.before-repair", f"{main}.repaired"] if name in (main, f"{main}.before-repair") else [name]

    def main(self, after, before):
        # What is there is there in any case.
        return f"{ID}.jsonl"


class RepairToFile(Case):
    def command(self, folder):
        return [self.binary, "repair", f"{ID}.jsonl", "--out", "out.jsonl"]


class RepairAsNew(Case):
    def command(self, folder):
        return [self.binary, "repair", f"{ID}.jsonl", "--new-session"]


class Fork(Case):
    def files(self):
        return {f"{ID}.jsonl": talk("a", "b", "c")}

    def command(self, folder):
        return [self.binary, "fork", f"{ID}.jsonl"]


class Merge(Case):
    def files(self):
        return {f"one/{ID}.jsonl": talk("a", "b", "c"), f"two/{ID}.jsonl": talk("a", "b", "d"), f"one/{ID}/tool-results/1.txt": b"1", f"two/{ID}/tool-results/2.txt": b"2"}

    def command(self, folder):
        return [self.binary, "merge", f"one/{ID}.jsonl", f"two/{ID}.jsonl", "--out", "out.jsonl"]


class Move(Case):
    def files(self):
        old = "projects/-old"
        return {f"{old}/{ID}.jsonl": talk("a", cwd="/old"), f"{old}/{ID}/subagents/agent-a1.jsonl": talk("x"), f"{old}/{ID}/tool-results/r.txt": b"result",
                f"{old}/{OTHER}.jsonl": talk("b", session=OTHER, cwd="/old")}

    def command(self, folder):
        return [self.binary, "move", "/old", "/new", "--root", str(folder / "projects")]

    def homes(self, name):
        return [name, name.replace("-old", "-new")]

    def is_whole(self, name, before, after):
        # The line that says where the session is.
        return after.startswith(before) if name.endswith(".jsonl") else after == before

    def left(self, before, after, success):
        # Each session is whole at one of the places, and the same call finishes: both names of a file are no file more.
        return [name for name in after if name not in before and name.replace("-new", "-old") not in before]


class MoveBack(Move):
    def prepare(self, folder):
        super().prepare(folder)
        subprocess.run(super().command(folder), cwd=folder, env=self.environment(folder), check=True, capture_output=True)

    def command(self, folder):
        return [*super().command(folder), "--undo"]

    def homes(self, name):
        return [name, name.replace("-new", "-old")]

    def is_whole(self, name, before, after):
        # The line of the move is removed again.
        without = before[: before.rstrip(b"\n").rfind(b"\n") + 1]
        return after.startswith(without) if name.endswith(".jsonl") and "subagents" not in name else after == before

    def left(self, before, after, success):
        return [name for name in after if name not in before and name.replace("-old", "-new") not in before]


class Export(Case):
    form, end = "--html", ".out"

    def files(self):
        return {f"{ID}.jsonl": talk("a", "b", "password=hunter2hunter2")}

    def command(self, folder):
        return [self.binary, "export", f"{ID}.jsonl", self.form, "page.out", "--json-report", "report.json"]

    def left(self, before, after, success):
        # The report names what was found before the file is written.
        return [name for name in after if name not in before and name not in ("page.out", "report.json")]

    def again(self):
        return [] if "--force" in self.command(pathlib.Path()) else ["--force"]


class ExportOver(Export):
    form = "--text"

    def files(self):
        return {**super().files(), "page.out": b"what was there\n" * 9}

    def command(self, folder):
        return [self.binary, "export", f"{ID}.jsonl", self.form, "page.out", "--force"]

    def is_whole(self, name, before, after):
        return before == after or (name == "page.out" and after == self.success[name])


class Import(Case):
    def files(self):
        return {f"{ID}.jsonl": talk("a", "b", "c")}

    def prepare(self, folder):
        super().prepare(folder)
        subprocess.run([self.binary, "export", f"{ID}.jsonl", "--html", "page.html"], cwd=folder, env=self.environment(folder), check=True, capture_output=True)

    def command(self, folder):
        return [self.binary, "import", "page.html", "--out", "out.jsonl"]


class InArchive(Case):
    """Live sessions, and their archive, which has all but the last lines of them."""
    captures, ago = 1, None

    def files(self):
        project = "projects/-p"
        return {f"{project}/{ID}.jsonl": talk("a", "b"), f"{project}/{ID}/subagents/agent-a1.jsonl": talk("x"), f"{project}/{OTHER}.jsonl": talk("c", session=OTHER),
                f"tasks/{ID}/1.json": b"{}\n"}

    def prepare(self, folder):
        super().prepare(folder)
        old = time.time() - 40 * 86400
        for number in range(self.captures):
            for name in self.files():
                with open(folder / name, "ab") as file:
                    file.write(entry(f"{name[-9:]}{number}", None) if name.endswith("l") else b" \n")
                os.utime(folder / name, (old + number, old + number))
            self.keep(folder)
        for name, text in snapshot(folder).items():
            if not name.startswith(("archive", "data")):
                self.archived[name] = text
        if self.is_changed:
            for name in self.files():
                with open(folder / name, "ab") as file:
                    file.write(entry("more", None))

    is_changed = True

    def __init__(self, binary):
        super().__init__(binary)
        self.archived = {}

    def keep(self, folder):
        early = ["faketime", "-f", self.ago] if self.ago else []
        done = subprocess.run([*early, self.binary, "keep", "--root", folder / "projects"], env=self.environment(folder), capture_output=True)
        assert done.returncode == 0, done.stderr

    def environment(self, folder):
        return dict(super().environment(folder), TRANSCRIPT_ARCHIVE=str(folder / "archive"))

    def command(self, folder):
        return [self.binary, "keep", "--root", str(folder / "projects")]

    def homes(self, name):
        # What a repack replaces is in another pack: the archive is compared as a whole.
        return [] if name.startswith(("archive", "data")) else [name]

    def look(self, folder):
        """Everything that was archived comes back, at least as it was."""
        with tempfile.TemporaryDirectory(dir=scratch) as back:
            root = os.path.join(back, "projects")
            done = subprocess.run([self.binary, "restore", "--all", "--to", root], env=self.environment(folder), capture_output=True)
            found = snapshot(pathlib.Path(back))
            lost = [name for name, text in self.archived.items() if not found.get(name, b"").startswith(text)]
            return f"not in the archive: {lost}, {done.stderr}" if done.returncode or lost else None

    def left(self, before, after, success):
        return [name for name in after if name not in before and plain(name) not in success and not name.endswith("catalogue")]


class Keep(InArchive):
    pass


class Repack(InArchive):
    # One less than are joined.
    captures = 15


class Restore(InArchive):
    is_changed = False

    def command(self, folder):
        return [self.binary, "restore", "--all", "--to", str(folder / "back" / "projects")]

    def left(self, before, after, success):
        return [name for name in after if name not in before and after[name] != self.archived.get(name.removeprefix("back/"))]


class Prune(InArchive):
    is_changed, ago, moves = False, "-9d", True

    def command(self, folder):
        return [self.binary, "prune", "--yes", "--root", str(folder / "projects")]

    def homes(self, name):
        # Gone, or there: the archive has it.
        return []


class Naive(RepairInPlace):
    def command(self, folder):
        return [sys.executable, "-c", f"""
import os
lines = [line for line in open('{ID}.jsonl', 'rb') if line.endswith(b'}}\\n')]
open('{ID}.jsonl', 'wb').writelines(lines)
file = open('{ID}.jsonl', 'rb'); os.fsync(file.fileno())"""]


CASES = dict(repair=RepairInPlace, undo=Undo, repair_out=RepairToFile, repair_new=RepairAsNew, fork=Fork, merge=Merge, move=Move, move_back=MoveBack, export=Export,
             export_over=ExportOver, keep=Keep, repack=Repack, restore=Restore, prune=Prune)
CASES["import"] = Import


def snapshot(folder):
    """The bytes of each file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()}


def folders(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir()}


class Runs:
    def __init__(self, args, case, place, counts):
        self.args, self.case, self.place, self.counts = args, case, place, counts
        self.template = pathlib.Path(scratch) / "template"
        self.fresh_template()

    def fresh_template(self):
        """The files before the command, and the names that a run without faults makes."""
        shutil.rmtree(self.template, ignore_errors=True)
        self.restore_place(None)
        self.case.prepare(self.place)
        shutil.copytree(self.place, self.template, symlinks=True)
        self.before, self.folders_before = snapshot(self.place), folders(self.place)
        done = self.run()
        assert done.returncode == 0, (done.args, done.stderr)
        self.case.success = snapshot(self.place)
        self.success = {plain(name) for name in self.case.success}

    def restore_place(self, template):
        for path in self.place.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if template:
            subprocess.run(["cp", "-a", f"{template}/.", self.place], check=True)

    def run(self, fault=(), more=()):
        trace = ["strace", "-f", "-qq", "--seccomp-bpf", "-o", self.log, *fault] if fault else []
        command = [*trace, *self.case.command(self.place), *more]
        return subprocess.run(command, cwd=self.place, env=self.case.environment(self.place), capture_output=True, timeout=120)

    @property
    def log(self):
        return os.path.join(scratch, "log")

    def calls(self):
        """How often the command makes each call."""
        self.restore_place(self.template)
        command = ["strace", "-f", "-qq", "-o", self.log, *self.case.command(self.place)]
        subprocess.run(command, cwd=self.place, env=self.case.environment(self.place), capture_output=True, timeout=120)
        with open(self.log, errors="replace") as file:
            return collections.Counter(re.findall(r"^\d+ +(\w+)\(", file.read(), re.M))

    def wrong(self, what, name, detail, stderr):
        self.counts[what] += 1
        print(f"  {what}: {name}: {detail}; {stderr.decode(errors='replace').strip()[-300:]}", flush=True)

    def check(self, name, call, done):
        case, after = self.case, snapshot(self.place)
        failed, said = done.returncode != 0, done.stderr.decode(errors="replace") + done.stdout.decode(errors="replace")
        self.counts["errors"] += failed
        for file, text in self.before.items():
            homes = case.homes(file)
            if homes and not any(home in after and case.is_whole(file, text, after[home]) for home in homes):
                self.wrong("lost", name, file, done.stderr)
        problem = case.look(self.place)
        if problem:
            self.wrong("lost", name, problem, done.stderr)
        left = case.left(self.before, after, self.success) if failed else [file for file in after if plain(file) not in self.success and file not in self.before]
        unsaid = [file for file in left if os.path.basename(file) not in said]
        if left and call in REMOVALS:
            self.counts["removals"] += 1
        elif unsaid and not self.args.done:
            self.wrong("left", name, unsaid, done.stderr)
        elif left:
            self.counts["named"] += 1
        self.again(name, call, failed, done)

    def again(self, name, call, failed, done):
        """The same command finishes: what is there is what a run without faults makes."""
        case = self.case
        more = case.again() if hasattr(case, "again") else []
        again = self.run(more=more)
        after = snapshot(self.place)
        # What a run writes with a name that was asked for is there already when only its last sync failed.
        refuses = any(word in again.stderr for word in (b"exists", b"no earlier file"))
        if again.returncode and not refuses:
            self.wrong("again", name, f"exit code {again.returncode}", again.stderr)
        left = [file for file in after if plain(file) not in self.success and file not in self.before]
        left = [file for file in left if not re.search(r"\.transcript-\w{6}$|\.tmp\w{6}$", file) or call not in REMOVALS]
        if left and not self.args.done:
            self.wrong("again", name, f"left {left}", again.stderr)

    def all(self):
        for call, count in sorted(self.calls().items()):
            if call in NOT_FAILED:
                continue
            kinds = ["KILL"] if self.args.done else self.args.errors
            for kind, number in itertools.product(kinds, range(1, count + 1, self.args.every)):
                self.restore_place(self.template)
                how = f"signal=KILL" if kind == "KILL" else f"error={kind}"
                done = self.run(["-e", f"trace={call}", "-e", f"inject={call}:{how}:when={number}"])
                self.counts["runs"] += 1
                self.check(f"{call} {number} {kind}", call, done)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/debug/transcript")
    parser.add_argument("--on", action="append", default=[])
    parser.add_argument("--bindfs", action="store_true")
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--errors", nargs="*", default=["EIO", "ENOSPC", "EINTR"])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--done", action="store_true")
    parser.add_argument("--naive", action="store_true")
    args = parser.parse_args()
    if shutil.which("strace") is None:
        return print("skipped: no strace")
    binary = os.path.abspath(args.bin)
    total = collections.Counter()
    cases = {"naive": Naive} if args.naive else {name: CASES[name] for name in args.only}
    if shutil.which("faketime") is None and "prune" in cases:
        print("prune skipped: no faketime")
        del cases["prune"]
    global scratch
    places = [(folder, False) for folder in args.on or ["/tmp", "/dev/shm"]] + ([("bindfs", True)] if args.bindfs else [])
    for folder, is_fuse in places:
        with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory(dir=None if is_fuse else folder) as below:
            place = pathlib.Path(below).resolve() / "place"
            place.mkdir()
            if is_fuse:
                real = place.with_name("real")
                real.mkdir()
                subprocess.run(["bindfs", "--multithreaded", real, place], check=True)
            try:
                for name, case in cases.items():
                    counts = collections.Counter()
                    Runs(args, case(binary), place, counts).all()
                    print(f"{folder} {name}:", *(f"{what}={count}" for what, count in counts.items()), flush=True)
                    total.update(counts)
            finally:
                if is_fuse:
                    subprocess.run(["umount", place], check=True)
    print("all:", *(f"{what}={total[what]}" for what in ("runs", "errors", "named", "removals", "lost", "left", "again")))
    return int(total["lost"] + total["left"] + total["again"] > 0)


sys.exit(main())
