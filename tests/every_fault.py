#!/usr/bin/env python3
"""Fails each system call of every command that writes, in turn, and looks for lost lines and files left over. Uses nothing of this project but the
command.

    tests/every_fault.py [--bin BINARY] [--on FOLDER ...] [--bindfs] [--only NAME ...] [--errors EIO ...] [--looks N]

strace makes the nth call of one kind fail, for each n and each kind of call that a command makes after it was loaded, but for those that no disk
fails (memory, threads, signals, `close`). A call that changes something is failed with each error; with `+` after an error (`ENOSPC+`) every
later call of that kind fails as well, as on a disk that is full or dead. Of the calls that only look or read, one after the other is failed with
the next error, or with `--looks N` every Nth one (`--looks 0` fails all of them with each error). `--kill` kills the command before the call in
place of that. Each run starts with the same files, on each of the folders (name one on a disk and one in memory) and, with `--bindfs`, on a FUSE
file system that knows no flag of renameat2. Whatever fails:

  lost      every file that was there is there whole, under its name, under one that the command is known to give it, or, where it can be given
            none, under one that the error names; a session that had a name has it
  left      after an error there is no file and no folder that was not there; where the failed call is a removal, or an exchange was
            done when it failed, the error names each. When only the output could not be printed, everything may be done
  untrue    where the exit code is 0, everything is there that a run without a fault makes, byte for byte
  crash     the exit code is 0, 1 or 2, within two minutes
  again     the same command then does its work: what is there is what a run without a fault makes, byte for byte where two such
            runs make the same, and nothing is left over, also not of a failed removal

The counts of each case are printed, and how often each kind of call was failed. Needs strace; `--bindfs` needs bindfs; prune needs faketime.
`--naive` runs a repair and a fork as people write them: the first has to lose a session, the second to leave a part of one, and the
exit code is 1."""
import argparse, collections, itertools, json, os, pathlib, re, shutil, signal, subprocess, sys, tempfile, time

ID, OTHER = "1999463e-ee08-4b08-99d5-2d9a36fd8293", "2999463e-ee08-4b08-99d5-2d9a36fd8293"
# A process without memory, threads, signals or program code does nothing, and `close` of a synced file has nothing left to do.
NOT_FAILED = set("""arch_prctl brk clone clone3 execve exit exit_group futex getrandom mmap mprotect munmap mremap madvise poll prlimit64
    restart_syscall rseq rt_sigaction rt_sigprocmask rt_sigreturn sched_getaffinity sched_yield set_robust_list set_tid_address sigaltstack
    gettid getpid getppid tgkill kill clock_nanosleep nanosleep wait4 pipe2 close geteuid getuid sysinfo uname""".split())
REMOVALS = {"unlink", "unlinkat", "rmdir"}
# A full or dead disk fails all of them from some moment on.
WRITES = {"write", "pwrite64", "writev", "fsync", "fdatasync", "ftruncate", "fallocate", "copy_file_range", "mkdir", "mkdirat", "link", "linkat",
          "rename", "renameat", "renameat2"}
LOOKS = {"access", "faccessat", "faccessat2", "fcntl", "fstat", "fstatfs", "getcwd", "getdents64", "ioctl", "lseek", "newfstatat", "pread64", "read", "readlink", "readlinkat",
         "statfs", "statx"}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
SECONDS = 120


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
    # Files that another run may find missing and make.
    may_be_missing = ()
    # Whether a failed run leaves the times of files alone.
    keeps_times = True

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

    def prepare_with(self, folder, command):
        subprocess.run(command, cwd=folder, env=self.environment(folder), check=True, capture_output=True)

    def command(self, folder):
        raise NotImplementedError

    def environment(self, folder):
        return dict(os.environ, HOME=str(folder), XDG_DATA_HOME=str(folder / "data"), XDG_CACHE_HOME="/nonexistent", CLAUDE_CONFIG_DIR=str(folder), NO_COLOR="1")

    def lost(self, before, after):
        """The files that were there of which a byte is missing."""
        return [name for name, file in before.items() if not any(home in after and self.is_whole(home, file, after[home]) for home in self.homes(name))]

    def homes(self, name):
        """The names under which a file that was there may be afterwards."""
        return [name]

    def is_whole(self, name, before, after):
        return before.bytes == after.bytes

    def look(self, folder, is_done):
        """What is lost besides."""

    def times_lost(self, before, after):
        """The files of which a run without a fault loses the time."""
        return []

    def is_said(self, what, said):
        """Whether the command may leave something undone that it names, with exit code 0."""
        return False

    def left(self, before, after, success):
        """The names of files and folders that a run with an error left over, and of those that the error has to name."""
        return [name for name in after if name not in before], []


class RepairInPlace(Case):
    options = ()

    def command(self, folder):
        return [self.binary, "repair", f"{ID}.jsonl", "--keep-id", *self.options]

    def homes(self, name):
        return [name, f"{name}.before-repair"] if name == f"{ID}.jsonl" else [name]

    def lost(self, before, after):
        name = f"{ID}.jsonl"
        known = [normal(before[name].bytes), normal(self.done[name].bytes)]
        has_name = name in after and normal(after[name].bytes) in known
        return super().lost(before, after) + ([] if has_name else [f"the name {name}"])

    def left(self, before, after, success):
        """The old file has lost its name if another one leads to it; then what the repair made belongs to the new one."""
        new = [name for name in after if name not in before]
        kept = [name for name in new if after[name].bytes == before[f"{ID}.jsonl"].bytes]
        if not kept:
            return new, []
        return [name for name in new if plain(name) not in success and name not in kept], kept


class RepairCompact(RepairInPlace):
    options = ["--compact"]

    def files(self):
        progress = b"".join(b'{"type":"progress","uuid":"%08d-0000-4000-8000-000000000000","parentUuid":null,"sessionId":"%s","data":{}}\n' % (n, ID.encode()) for n in range(9))
        files = super().files()
        return {**files, f"{ID}.jsonl": files[f"{ID}.jsonl"] + progress + entry("e", uuid_of("c"))}


class Undo(RepairInPlace):
    def prepare(self, folder):
        super().prepare(folder)
        self.prepare_with(folder, super().command(folder))

    def command(self, folder):
        return [self.binary, "repair", f"{ID}.jsonl", "--undo"]

    def homes(self, name):
        main = f"{ID}.jsonl"
        return [main, f"{main}.before-repair", f"{main}.repaired"] if name in (main, f"{main}.before-repair") else [name]

    def left(self, before, after, success):
        undone = f"{ID}.jsonl.repaired"
        new = [name for name in after if name not in before]
        return [name for name in new if name != undone], [undone] if undone in new else []


class RepairToFile(Case):
    def command(self, folder):
        return [self.binary, "repair", f"{ID}.jsonl", "--out", "out.jsonl"]


class RepairAsNew(Case):
    def command(self, folder):
        return [self.binary, "repair", f"{ID}.jsonl", "--new-session"]


class Salvage(Case):
    """What the files of subagents and results still have of a session whose file is missing."""

    def files(self):
        files = super().files()
        del files[f"{ID}.jsonl"]
        return files

    def command(self, folder):
        return [self.binary, "repair", f"{ID}.jsonl", "--salvage", "--out", "out.jsonl"]


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
    keeps_times = False
    old, new = "projects/-old", "projects/-new"

    def files(self):
        old = "projects/-old"
        return {f"{old}/{ID}.jsonl": talk("a", cwd="/old"), f"{old}/{ID}/subagents/agent-a1.jsonl": talk("x"), f"{old}/{ID}/tool-results/r.txt": b"result",
                f"{old}/{OTHER}.jsonl": talk("b", session=OTHER, cwd="/old")}

    def command(self, folder):
        return [self.binary, "move", "/old", "/new", "--root", str(folder / "projects")]

    def homes(self, name):
        return [name, name.replace(self.old, self.new)]

    def times_lost(self, before, after):
        return [name for name, file in before.items() if not file.is_folder and after[name.replace(self.old, self.new)].time != file.time]

    def is_whole(self, name, before, after):
        # The line that says where the session is.
        return after.bytes.startswith(before.bytes) if name.endswith(".jsonl") else after.bytes == before.bytes

    def left(self, before, after, success):
        """Each session is whole at one of the places, and nothing of it at the other. While the old names are removed it is at both, and the error
        says so."""
        strange, named = [], []
        for id in (ID, OTHER):
            at = {place: [name for name in after if name.startswith(f"{place}/{id}")] for place in (self.old, self.new)}
            has_file = {place: f"{place}/{id}.jsonl" in after for place in at}
            if all(has_file.values()):
                named.append(f"{self.new}/{id}.jsonl")
            else:
                strange += at[self.old if has_file[self.new] else self.new]
        known = [*before, *(name.replace(self.old, self.new) for name in before)]
        if not any(name.startswith(f"{self.new}/") for name in after):
            known.remove(self.new)
        return strange + [name for name in after if name not in known], named


class MoveBack(Move):
    old, new = Move.new, Move.old

    def prepare(self, folder):
        super().prepare(folder)
        self.prepare_with(folder, super().command(folder))

    def command(self, folder):
        return [*super().command(folder), "--undo"]

    def is_whole(self, name, before, after):
        # The line of the move is removed again.
        without = before.bytes[: before.bytes.rstrip(b"\n").rfind(b"\n") + 1]
        return after.bytes.startswith(without) if name.endswith(".jsonl") and "subagents" not in name else after.bytes == before.bytes


class MoveCopy(Move):
    def command(self, folder):
        return [*super().command(folder), "--copy"]

    def homes(self, name):
        return [name]

    def times_lost(self, before, after):
        return [name for name, file in after.items() if name.startswith(f"{self.new}/") and not file.is_folder and file.time != 10**18]

    def left(self, before, after, success):
        """A copy is whole when its file is there."""
        new = [name for name in after if name not in before]
        copies = [name.removesuffix(".jsonl") for name in new if re.fullmatch(rf"{self.new}/{UUID.pattern}\.jsonl", name)]
        return [name for name in new if name != self.new and not any(name.startswith(copy) for copy in copies)] + ([self.new] if self.new in new and not copies else []), []


class Export(Case):
    options = ["--html"]

    def files(self):
        return {f"{ID}.jsonl": talk("a", "b", "password=hunter2hunter2")}

    def command(self, folder):
        return [self.binary, "export", f"{ID}.jsonl", *self.options, "page.out", "--json-report", "report.json"]


class ExportPlain(Export):
    options = ["--plain", "--no-lines", "--html"]


class ExportMarkdown(Export):
    options = ["--markdown"]


class ExportJson(Export):
    options = ["--json"]


class ExportText(Export):
    options = ["--text"]


class Over:
    """The same in the place of a file that is there."""
    over = "page.out"

    def files(self):
        return {**super().files(), self.over: b"what was there\n" * 9}

    def command(self, folder):
        return [*super().command(folder), "--force"]

    def is_whole(self, name, before, after):
        return before.bytes == after.bytes or name == self.over and self.is_new(after)

    def is_new(self, after):
        return normal(after.bytes) in [normal(file.bytes) for file in self.done.values()]


class ExportOverHtml(Over, Export):
    pass


class ExportOverText(Over, ExportText):
    pass


class Import(Case):
    def files(self):
        return {f"{ID}.jsonl": talk("a", "b", "c")}

    def prepare(self, folder):
        super().prepare(folder)
        self.prepare_with(folder, [self.binary, "export", f"{ID}.jsonl", "--html", "page.html"])

    def command(self, folder):
        return [self.binary, "import", "page.html", "--out", "out.jsonl"]


class ImportOver(Over, Import):
    over = "out.jsonl"


class InArchive(Case):
    """Live sessions, and their archive, which has all but the last lines of them."""
    captures, ago = 1, None
    is_changed = True
    # It has no authority.
    may_be_missing = ("archive/catalogue", "data/transcript/archives/HASH/catalogue")

    def files(self):
        project = "projects/-p"
        return {f"{project}/{ID}.jsonl": talk("a", "b"), f"{project}/{ID}/subagents/agent-a1.jsonl": talk("x"), f"{project}/{OTHER}.jsonl": talk("c", session=OTHER),
                f"tasks/{ID}/1.json": b"{}\n"}

    def __init__(self, binary):
        super().__init__(binary)
        self.archived = {}

    def prepare(self, folder):
        super().prepare(folder)
        self.archived = {}
        old = int(time.time()) - 40 * 86400
        for number in range(self.captures):
            for name in self.files():
                with open(folder / name, "ab") as file:
                    file.write(entry(f"{name[-9:]}{number}", None) if name.endswith("l") else b" \n")
                os.utime(folder / name, (old + number, old + number))
            early = ["faketime", "-f", self.ago] if self.ago else []
            self.prepare_with(folder, [*early, *self.keep(folder)])
        if self.captures:
            self.archived = self.live(snapshot(folder))
        for name in self.files() if self.is_changed else ():
            with open(folder / name, "ab") as file:
                file.write(entry("more", None))

    def live(self, files):
        return {name: file for name, file in files.items() if name.startswith(("projects/", "tasks/")) and not file.is_folder}

    def keep(self, folder):
        return [self.binary, "keep", "--root", str(folder / "projects")]

    def environment(self, folder):
        return dict(super().environment(folder), TRANSCRIPT_ARCHIVE=str(folder / "archive"))

    # For who reads it.
    reading = environment

    def command(self, folder):
        return self.keep(folder)

    def lost(self, before, after):
        # What a repack replaces is in another pack: the archive is looked at as a whole.
        return super().lost(self.live(before), after)

    def wanted(self, folder):
        """What the archive has to give back when the command did its work."""
        return self.live(snapshot(folder))

    def look(self, folder, is_done):
        """Everything that was archived comes back, at least as it was."""
        if not (folder / "archive" / "archive.json").exists():
            return "no archive" if is_done or self.archived else None
        with tempfile.TemporaryDirectory(dir=scratch) as back:
            root = os.path.join(back, "projects")
            done = subprocess.run([self.binary, "restore", "--all", "--to", root], env=self.reading(folder), capture_output=True)
            found = snapshot(pathlib.Path(back))
            lost = [name for name, file in self.archived.items() if name not in found or not found[name].bytes.startswith(file.bytes)]
            if is_done:
                lost += [name for name, file in self.wanted(folder).items() if name not in found or found[name] != file]
            return f"not in the archive: {lost}, {done.stderr}" if done.returncode or lost else None

    def left(self, before, after, success):
        return [name for name in after if name not in before and plain(name) not in success], []


class Keep(InArchive):
    pass


class KeepFirst(InArchive):
    captures = 0


class KeepFull(InArchive):
    """Of one session only the mode was changed, of another one only the time."""

    def command(self, folder):
        return [*super().command(folder), "--full"]

    def prepare(self, folder):
        super().prepare(folder)
        for name in self.files():
            (folder / name).write_bytes(self.archived[name].bytes)
            os.utime(folder / name, (10**9, 10**9))
            os.chmod(folder / name, 0o400)


class KeepEncrypted(KeepFirst):
    def command(self, folder):
        return [*super().command(folder), "--encrypt", str(folder / "key")]

    def reading(self, folder):
        return dict(self.environment(folder), TRANSCRIPT_IDENTITY=str(folder / "key"))


class Repack(InArchive):
    # One less than are joined.
    captures = 15


class Restore(InArchive):
    is_changed = False

    def command(self, folder):
        return [self.binary, "restore", "--all", "--to", str(folder / "back" / "projects")]

    def wanted(self, folder):
        return self.archived

    def look(self, folder, is_done):
        """What has its name is whole, with its time and mode."""
        found = snapshot(folder / "back") if (folder / "back").exists() else {}
        strange = [name for name, file in self.archived.items() if found.get(name, file) != file]
        return f"restored otherwise: {strange}" if strange else super().look(folder, is_done)

    def left(self, before, after, success):
        """Files that are whole stay, and the folders that have one."""
        new = {name: file for name, file in after.items() if name not in before}
        whole = [name for name in new if name.removeprefix("back/") in self.archived]
        return [name for name in new if name not in whole and not any(file.startswith(f"{name}/") for file in whole)], []


class RestoreInPlace(Restore):
    """Into the folder of the client, from which a part is gone."""

    def prepare(self, folder):
        super().prepare(folder)
        shutil.rmtree(folder / "tasks")
        shutil.rmtree(folder / "projects" / "-p" / ID)
        os.remove(folder / "projects" / "-p" / f"{ID}.jsonl")

    def command(self, folder):
        return [self.binary, "restore", "--all", "--root", str(folder / "projects")]

    def look(self, folder, is_done):
        found = snapshot(folder)
        strange = [name for name, file in self.archived.items() if found.get(name, file) != file]
        return f"restored otherwise: {strange}" if strange else InArchive.look(self, folder, is_done)


class Prune(InArchive):
    is_changed, ago = False, "-9d"

    def command(self, folder):
        return [self.binary, "prune", "--yes", "--root", str(folder / "projects")]

    def lost(self, before, after):
        # Gone, or there: the archive has it. What is there is whole.
        names = {re.sub(r"\.pruned-(.*)\.aside$", r"\1", name): file for name, file in self.live(after).items()}
        return [name for name, file in names.items() if name not in before or file.bytes != before[name].bytes]

    def wanted(self, folder):
        return self.archived

    def is_said(self, what, said):
        # A session for which there is no proof stays.
        return what.startswith("left: ") and "stays (" in said

    def left(self, before, after, success):
        return [name for name in after if name not in before and plain(name) not in success], []


class NaiveRepair(RepairInPlace):
    def command(self, folder):
        return [sys.executable, "-I", "-S", "-c", f"""
import os
os.rename('{ID}.jsonl', '{ID}.jsonl.before-repair')
with open('{ID}.jsonl', 'wb', buffering=0) as file:
    for line in open('{ID}.jsonl.before-repair', 'rb'):
        if line.endswith(b'}}\\n'):
            file.write(line)
    os.fsync(file.fileno())"""]


class NaiveFork(Fork):
    def command(self, folder):
        return [sys.executable, "-I", "-S", "-c", f"""
import os
with open('{OTHER}.jsonl', 'wb', buffering=0) as file:
    for line in open('{ID}.jsonl', 'rb'):
        file.write(line.replace(b'{ID}', b'{OTHER}'))
    os.fsync(file.fileno())"""]


CASES = dict(repair=RepairInPlace, repair_compact=RepairCompact, undo=Undo, repair_out=RepairToFile, repair_new=RepairAsNew, salvage=Salvage, fork=Fork, merge=Merge, move=Move,
             move_back=MoveBack, move_copy=MoveCopy, export=Export, export_plain=ExportPlain, export_markdown=ExportMarkdown, export_json=ExportJson, export_text=ExportText,
             export_over=ExportOverHtml, export_over_text=ExportOverText, import_over=ImportOver, keep=Keep, keep_first=KeepFirst, keep_full=KeepFull,
             keep_encrypted=KeepEncrypted, repack=Repack, restore=Restore, restore_in_place=RestoreInPlace, prune=Prune)
CASES["import"] = Import
NAIVE = dict(naive_repair=NaiveRepair, naive_fork=NaiveFork)


def plain(name):
    """A name with another word for each id that is made anew, and for numbers."""
    name = UUID.sub(lambda found: found[0] if found[0] in (ID, OTHER) else "ID", name)
    return re.sub(r"[0-9a-f]{32}", "HASH", name)


def normal(text):
    """The bytes of a file without what is another thing each time."""
    text = re.sub(UUID.pattern.encode(), b"ID", text)
    return re.sub(rb"\d{4}-\d\d-\d\dT[\d:.]+Z", b"TIME", text)


class Found(collections.namedtuple("Found", "bytes mode time is_folder")):
    """A file or a folder."""


def snapshot(folder):
    """Everything below a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        is_folder = path.is_dir()
        found[str(path.relative_to(folder))] = Found(b"" if is_folder else path.read_bytes(), status.st_mode, 0 if is_folder else status.st_mtime_ns, is_folder)
    return found


def by_plain_name(files):
    groups = collections.defaultdict(list)
    for name, file in files.items():
        groups[plain(name)].append((normal(file.bytes), file.mode, file.time))
    return {name: sorted(group) for name, group in groups.items()}


class Expected:
    """What two runs without a fault made: what is the same in both has to be the same always."""

    def __init__(self, case, one, other):
        self.case = case
        one, other = by_plain_name(one), by_plain_name(other)
        assert set(one) == set(other), (set(one) ^ set(other))
        self.parts = {name: self.same(one[name], other[name]) for name in one}
        self.names = set(one)
        self.given = {name for name in one if "ID" not in name and "HASH" not in name}

    def same(self, one, other):
        def part(number):
            values = [file[number] for file in one]
            return values if values == [file[number] for file in other] else None
        return [part(number) for number in range(3)]

    def differs(self, after, with_times=True):
        """What is not as expected."""
        after = by_plain_name(after)
        missing = [name for name in self.names - set(after) if name not in self.case.may_be_missing]
        wrong = [f"missing: {name}" for name in missing] + [f"left: {name}" for name in set(after) - self.names]
        for name, parts in self.parts.items():
            for number, what in enumerate(("bytes", "mode", "time")):
                if name in after and parts[number] is not None and (what != "time" or with_times):
                    # Of what has a new name each time there may be another one, of the run before.
                    found = [file[number] for file in after[name]]
                    if found != parts[number] and (name in self.given or not set(found) <= set(parts[number])):
                        wrong.append(f"other {what}: {name}")
        return wrong


class Runs:
    def __init__(self, args, case, place, counts, calls):
        self.args, self.case, self.place, self.counts, self.failed_calls = args, case, place, counts, calls
        self.template = pathlib.Path(scratch) / "template"
        shutil.rmtree(self.template, ignore_errors=True)
        self.clear()
        case.prepare(place)
        shutil.copytree(place, self.template, symlinks=True)
        self.before = snapshot(place)
        after = []
        for _ in range(2):
            self.fresh()
            done = self.run()
            assert done.returncode == 0, (done.args, done.stdout, done.stderr)
            after.append(snapshot(place))
        case.done = after[0]
        self.expected = Expected(case, *after)
        problem = case.lost(self.before, after[1]) or case.times_lost(self.before, after[1]) or case.look(place, True)
        assert not problem, problem

    def clear(self):
        for path in self.place.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def fresh(self):
        """The files before the command."""
        self.clear()
        subprocess.run(["cp", "-a", f"{self.template}/.", self.place], check=True)

    def run(self, fault=()):
        trace = ["strace", "-f", "-qq", "--seccomp-bpf", "-o", self.log, *fault] if fault else []
        command = [*trace, *self.case.command(self.place)]
        child = subprocess.Popen(command, cwd=self.place, env=self.case.environment(self.place), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = child.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
        return subprocess.CompletedProcess(command, child.returncode, out, err)

    @property
    def log(self):
        return os.path.join(scratch, "log")

    def calls(self):
        """The kinds of calls that the command makes, and how many of each the loader makes."""
        self.fresh()
        self.run(["-e", "trace=all"])
        with open(self.log, errors="replace") as file:
            names = re.findall(r"^\d+ +(\w+)\(", file.read(), re.M)
        # The first call of every Rust program; one in another language is loaded as it is.
        loaded = names.index("poll") if "poll" in names else 0
        return sorted(set(names) - NOT_FAILED), collections.Counter(names[:loaded])

    def wrong(self, what, name, detail, done):
        self.counts[what] += 1
        said = (done.stderr + done.stdout).decode(errors="replace").strip()
        print(f"  {what}: {name}: {detail}; {done.returncode}: {said[-300:]}", flush=True)

    def check(self, name, call, done, is_output):
        case, after = self.case, snapshot(self.place)
        is_killed = self.args.kill
        # A program that the system cannot load says so.
        is_loaded = b"error while loading shared libraries" not in done.stderr
        if is_loaded and not is_killed and done.returncode not in (0, 1, 2):
            self.wrong("crash", name, "", done)
        failed = done.returncode != 0
        said = (done.stderr + done.stdout).decode(errors="replace")
        self.counts["errors"] += failed
        # Where no name can be given any more, a file is whole under another one that the error names.
        held = {file: after[file].bytes for file in after if file not in self.before and file in said and failed}
        lost = [file for file in case.lost(self.before, after) if file not in self.before or self.before[file].bytes not in held.values()]
        problem = f"{lost}" if lost else case.look(self.place, not failed)
        if problem:
            self.wrong("lost", name, problem, done)
        if failed:
            left, named = case.left(self.before, after, self.expected.names)
            old = [file.bytes for file in self.before.values() if not file.is_folder]
            left = [file for file in left if held.get(file) not in old]
            unsaid = [file for file in left if call not in REMOVALS or file not in said] + [file for file in named if file not in said]
            if is_output and not self.expected.differs(after):
                self.counts["done"] += 1
            elif unsaid and not is_killed:
                self.wrong("left", name, unsaid, done)
            elif left:
                self.counts["removals"] += 1
            elif named:
                self.counts["exchanged"] += 1
        else:
            differs = self.expected.differs(after)
            said_left = [f"left: {file}" for file in after if call in REMOVALS and file in said]
            self.counts["removals"] += bool(set(differs) & set(said_left))
            self.wrong_if("untrue", name, [what for what in differs if what not in said_left and not case.is_said(what, said)], done)
        self.again(name)

    def wrong_if(self, what, name, detail, done):
        if detail:
            self.wrong(what, name, detail, done)

    def again(self, name):
        """The same command finishes: what is there is what a run without faults makes."""
        # Younger ones may belong to a process that runs.
        for path in self.place.rglob("*"):
            if re.fullmatch(r"\.(transcript-|tmp|new-)\w*", path.name) and path.is_file():
                os.utime(path, (0, 0))
        # It may refuse: what was asked for is there when only its last sync failed.
        again = self.run()
        differs = self.expected.differs(snapshot(self.place), self.case.keeps_times)
        differs = differs or self.case.look(self.place, True)
        self.wrong_if("again", name, differs, again)

    def all(self):
        calls, loaded = self.calls()
        for call in calls:
            if self.args.calls and call not in self.args.calls:
                continue
            each = call not in LOOKS or self.args.looks == 0
            errors = [error for error in self.args.errors if not error.endswith("+") or call in WRITES]
            kinds = ["KILL"] if self.args.kill else errors if each else [None]
            for kind in kinds:
                missed = 0
                for number in itertools.count(loaded[call] + 1, 1 if each else self.args.looks):
                    found = self.one(call, number, kind or errors[number % len(errors)])
                    # Threads do not make the same calls each time.
                    missed = 0 if found else missed + 1
                    if missed == 2:
                        break

    def one(self, call, number, kind):
        """Fails one call. Returns whether the command made that many."""
        self.fresh()
        how = "signal=KILL" if kind == "KILL" else f"error={kind.rstrip('+')}"
        done = self.run(["-e", f"trace={call}", "-e", f"inject={call}:{how}:when={number}{'+' if kind.endswith('+') else ''}"])
        with open(self.log, errors="replace") as file:
            text = file.read()
        failed = re.findall(r"^.*\(INJECTED\)$|^.*killed by SIGKILL.*$", text, re.M)
        if not failed:
            return False
        self.counts["runs"] += 1
        self.failed_calls[call] += 1
        self.check(f"{call} {number} {kind}", call, done, all(re.search(r"\bwrite\([12],", line) for line in failed))
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/debug/transcript")
    parser.add_argument("--on", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--bindfs", action="store_true")
    parser.add_argument("--only", nargs="*", default=list(CASES), metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--errors", nargs="*", default=["EIO", "ENOSPC", "EINTR", "ENOSPC+"])
    parser.add_argument("--calls", nargs="*", default=[], help="only these kinds of calls")
    parser.add_argument("--looks", type=int, default=1, metavar="N")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--naive", action="store_true")
    args = parser.parse_args()
    if shutil.which("strace") is None:
        return print("skipped: no strace")
    binary = os.path.abspath(args.bin)
    total, calls = collections.Counter(), collections.Counter()
    cases = NAIVE if args.naive else {name: CASES[name] for name in args.only}
    if args.naive:
        args.calls, args.errors = sorted(WRITES), ["EIO"]
    if shutil.which("faketime") is None and "prune" in cases:
        print("prune skipped: no faketime")
        del cases["prune"]
    global scratch
    places = [(folder, False) for folder in args.on or ([] if args.bindfs else ["/tmp", "/dev/shm"])] + ([("bindfs", True)] if args.bindfs else [])
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
                    Runs(args, case(binary), place, counts, calls).all()
                    print(f"{folder} {name}:", *(f"{what}={count}" for what, count in counts.items()), flush=True)
                    total.update(counts)
            finally:
                if is_fuse:
                    subprocess.run(["umount", place], check=True)
    print("calls:", *(f"{call}={count}" for call, count in sorted(calls.items())))
    wrong = ("lost", "left", "untrue", "crash", "again")
    print("all:", *(f"{what}={total[what]}" for what in ("runs", "errors", "done", "exchanged", "removals", *wrong)))
    return int(any(total[what] for what in wrong))


sys.exit(main())
