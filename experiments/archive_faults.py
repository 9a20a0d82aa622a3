#!/usr/bin/env python3
"""Fails each system call of `transcript keep`, `restore` and `prune` once, on the disk of this machine.

    experiments/archive_faults.py BINARY [EVERY]

strace makes the nth call of one kind fail, for each kind and n (with EVERY only each EVERYth), with EIO and with ENOSPC. No failure
may lose anything: the archive gives back what it had, no live file changes, none goes without its copy, none of a restore
is there in part, and the same command completes the work afterwards. Needs strace and faketime.
"""
import argparse, collections, os, re, shutil, subprocess, sys, tempfile, time

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("binary", help="the command transcript")
arguments.add_argument("every", nargs="?", type=int, default=1, help="fail each system call with this distance only")
given = arguments.parse_args()
binary, every = given.binary, given.every
# A process without memory, threads or program code does nothing.
NOT_FAILED = set("""arch_prctl brk clone clone3 execve exit exit_group futex getrandom ioctl madvise mmap mprotect munmap mremap poll prlimit64
    restart_syscall rseq rt_sigaction rt_sigprocmask rt_sigreturn sched_getaffinity sched_yield set_robust_list set_tid_address sigaltstack
    gettid getpid tgkill kill clock_nanosleep""".split())
place = tempfile.mkdtemp()
log = os.path.join(place, "log")


class Tree:
    """Live sessions, and their archive, which has all but the last lines of them."""

    def __init__(self, name, is_encrypted):
        self.folder = os.path.join(place, name)
        self.root = os.path.join(self.folder, "home", "projects")
        self.archive = os.path.join(self.folder, "archive")
        self.environment = dict(os.environ, TRANSCRIPT_ARCHIVE=self.archive, XDG_DATA_HOME=os.path.join(self.folder, "data"))
        project = os.path.join(self.root, "-p")
        os.makedirs(project)
        self.paths = [os.path.join(project, f"{number:08x}-2222-4333-8444-555555555555.jsonl") for number in range(3)]
        self.paths.append(os.path.join(project, "00000000-2222-4333-8444-555555555555", "subagents", "agent-a.jsonl"))
        os.makedirs(os.path.dirname(self.paths[-1]))
        key = ("--encrypt", os.path.join(self.folder, "key")) if is_encrypted else ()
        for step in range(2):
            for number, path in enumerate(self.paths):
                with open(path, "a") as file:
                    file.writelines(f'{{"uuid":"{number}-{step}-{line}","text":"{"words " * number}"}}\n' for line in range(40))
                os.utime(path, (time.time() - 40 * 86400,) * 2)
            subprocess.run(["faketime", "-f", "-9d", binary, "keep", "--root", self.root, *key], env=self.environment, check=True, capture_output=True)
            key = ()
        if is_encrypted:
            self.environment["TRANSCRIPT_IDENTITY"] = os.path.join(self.folder, "key")
        self.archived = self.live()

    def live(self, root=None):
        files = {}
        for folder, _, names in os.walk(root or self.root):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    files[os.path.relpath(path, root or self.root)] = file.read()
        return files

    def run(self, *arguments, fault=None):
        command = [binary, *arguments, "--root", self.root]
        if fault:
            command = ["strace", "-f", "-qq", "-o", log, *fault, *command]
        return subprocess.run(command, env=self.environment, capture_output=True, timeout=60)

    def restored(self):
        back = os.path.join(self.folder, "check", "projects")
        shutil.rmtree(os.path.dirname(back), ignore_errors=True)
        done = self.run("restore", "--all", "--to", back)
        assert done.returncode == 0, done.stderr
        return self.live(back)


def keep(tree, fault):
    before, old = tree.live(), tree.archived
    tree.run("keep", fault=fault)
    assert tree.live() == before, "a live file changed"
    found = tree.restored()
    assert all(found.get(name) in (old[name], before[name]) for name in old), "an archived session is gone"
    assert tree.run("keep").returncode == 0 and tree.restored() == before, "the next capture is incomplete"


def restore(tree, fault):
    back = os.path.join(tree.folder, "back", "projects")
    tree.run("restore", "--all", "--to", back, fault=fault)
    found = {name: text for name, text in tree.live(back).items() if name.endswith(".jsonl")}
    assert all(tree.archived.get(name) == text for name, text in found.items()), "a file is there in part"
    done = tree.run("restore", "--all", "--to", back)
    assert done.returncode == 0 and tree.live(back) == tree.archived, ("the next restore is incomplete", done.stderr)


def prune(tree, fault):
    tree.run("prune", "--yes", fault=fault)
    names = {re.sub(r"\.pruned-(.*)\.aside$", r"\1", name): text for name, text in tree.live().items()}
    assert all(tree.archived.get(name) == text for name, text in names.items()), "a live file changed"
    assert tree.restored() == tree.archived, "a pruned session is gone"
    done = tree.run("prune", "--yes")
    assert done.returncode == 0 and not tree.live(), ("the next prune is incomplete", done.stderr)


tried = collections.Counter()
for command in (keep, restore, prune):
    for is_encrypted in (False, True):
        template = Tree(f"{command.__name__}-{is_encrypted}", is_encrypted)
        if command is keep:
            for path in template.paths:
                with open(path, "a") as file:
                    file.write('{"more":1}\n')
        saved = template.folder + ".saved"
        shutil.copytree(template.folder, saved)

        def once(fault):
            shutil.rmtree(template.folder)
            shutil.copytree(saved, template.folder)
            command(template, fault)

        once([])
        arguments = {"keep": ["keep"], "restore": ["restore", "--all", "--to", os.path.join(template.folder, "count", "projects")], "prune": ["prune", "--yes"]}
        shutil.rmtree(template.folder)
        shutil.copytree(saved, template.folder)
        template.run(*arguments[command.__name__], fault=["-e", "trace=all"])
        with open(log) as file:
            calls = collections.Counter(re.findall(r"^\d+ +(\w+)\(", file.read(), re.M))
        for call, count in sorted(calls.items()):
            if call in NOT_FAILED:
                continue
            for number in range(1, count + 1, every):
                for error in ("EIO", "ENOSPC"):
                    fault = ["-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={number}"]
                    try:
                        once(fault)
                    except AssertionError as failed:
                        sys.exit(f"{command.__name__}, encrypted {is_encrypted}, {call} {number} {error}: {failed}")
                    tried[command.__name__] += 1
shutil.rmtree(place)
print(", ".join(f"{count} runs of {name}" for name, count in tried.items()) + ": nothing lost")
