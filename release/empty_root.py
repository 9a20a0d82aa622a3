"""Runs a packed command where nothing is but its own files: in a root folder without Rust, without a shell, and for a static program without a C library."""
import os, pathlib, re, shutil, subprocess

import first_screen
from project import Failed

SHELLS = {"bash": "transcript.bash", "zsh": "_transcript", "fish": "transcript.fish", "powershell": "_transcript.ps1"}


def commands_of(page):
    """the commands that the main manual page names"""
    return sorted({*re.findall(r"transcript\\-([a-z]+)\(1\)", page)})


def libraries(program):
    """the shared libraries of a program of this machine, with its loader"""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return [pathlib.Path(path) for path in re.findall(r"(/\S+) \(0x", listed)]


class EmptyRoot:
    """a root folder, and how a program in it is started; `emulator` is a static program that runs those of another processor"""

    def __init__(self, root, program, emulator=None):
        self.root = root
        self.program = program
        for path in libraries(root / program.lstrip("/")):
            (root / path.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / path.relative_to("/"))
        # The path is that of this system: the environment of the program is empty.
        chroot = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin:/bin")
        self.before = [chroot, root] if os.geteuid() == 0 else ["/usr/bin/unshare", "--map-root-user", chroot, root]
        if emulator:
            shutil.copy(emulator, root / "emulator")
            self.before.append("/emulator")
        (root / "tmp").mkdir(exist_ok=True)
        self.sessions = first_screen.write_homes(root / "home")

    def run(self, home, *arguments, code=0):
        ran = subprocess.run(
            [*self.before, self.program, *arguments],
            env={"HOME": f"/home/{home}", "PATH": "/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if ran.returncode != code:
            raise Failed(f"transcript {' '.join(arguments)} ends with {ran.returncode}, not {code}:\n{ran.stdout}{ran.stderr}")
        return ran.stdout

    def must(self, condition, what):
        if not condition:
            raise Failed(f"{self.program}: {what}")

    def check(self, version, pages, completions, shown):
        """`pages` are the packed manual pages, `completions` the packed script of each shell; what README's commands show is written to the file `shown`"""
        self.must(self.run("none", "--version").split()[1] == version, f"its version is not {version}")
        commands = commands_of(self.run("none", "man"))
        names = {"transcript.1", *(f"transcript-{command}.1" for command in commands)}
        self.must(len(commands) > 20 and names <= {*pages}, f"no manual page for {', '.join(sorted(names - {*pages}))}")
        for shell, packed in completions.items():
            self.must(self.run("none", "completions", shell) == packed, f"it prints other completions for {shell}")
        self.must("transcript" not in self.run("none", "list"), "it lists a session of an empty home")
        self.run("none", "replay", "latest", code=2)
        listed = self.run("some", "list", "--json")
        self.must(len(listed.splitlines()) == len(self.sessions), f"it does not list {len(self.sessions)} sessions:\n{listed}")
        for session in self.sessions.values():
            self.must(self.run("some", "replay", session), f"it replays nothing of {session}")
        return f"{len(pages)} manual pages; {self.type_first_screen(shown)}"

    def type_first_screen(self, shown):
        return first_screen.check([*self.before, self.program], self.root / "home", self.sessions, "/home", shown)
