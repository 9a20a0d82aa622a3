"""Runs a packed command where nothing is but its own files: in a root folder without Rust, without a shell, and for a static program without a C library."""
import os, pathlib, re, shutil, subprocess, tempfile

from project import ROOT, Failed

SESSIONS = ("linear", "rewind", "torn-tail", "parallel-tools")
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
        for home in ("none", "some"):
            (root / "home" / home).mkdir(parents=True)
        project = root / "home/some/.claude/projects/-work"
        project.mkdir(parents=True)
        for number, name in enumerate(SESSIONS):
            text = (ROOT / f"fixtures/v1/sessions/{name}.jsonl").read_bytes()
            (project / f"00000000-0000-4000-8000-{number:012}.jsonl").write_bytes(text)

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

    def check(self, version, pages, completions):
        """`pages` are the packed manual pages, `completions` the packed script of each shell"""
        self.must(self.run("none", "--version").split()[1] == version, f"its version is not {version}")
        commands = commands_of(self.run("none", "man"))
        names = {"transcript.1", *(f"transcript-{command}.1" for command in commands)}
        self.must(len(commands) > 20 and names <= {*pages}, f"no manual page for {', '.join(sorted(names - {*pages}))}")
        for shell, packed in completions.items():
            self.must(self.run("none", "completions", shell) == packed, f"it prints other completions for {shell}")
        self.must("transcript" not in self.run("none", "list"), "it lists a session of an empty home")
        self.run("none", "replay", "latest", code=2)
        listed = self.run("some", "list", "--json")
        self.must(len(listed.splitlines()) == len(SESSIONS), f"it does not list {len(SESSIONS)} sessions:\n{listed}")
        for number in range(len(SESSIONS)):
            self.must(self.run("some", "replay", f"00000000-0000-4000-8000-{number:012}"), "it replays nothing")
        return f"{len(pages)} manual pages, {len(SESSIONS)} sessions"
