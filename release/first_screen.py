#!/usr/bin/env python3
"""release/first_screen.py [--width COLUMNS] PROGRAM

Types the commands of README's first screen, line by line, on a terminal: with an empty home, and with the sessions of fixtures/v1/sessions in it. Prints
the screen after each line, and compares it and the exit code with what a person should see there. PROGRAM is an installed `transcript`; it gets no
variable but HOME, PATH and TERM. Exits with 1 when a line does something else. release/dist.py and release/rehearse.py do the same with what they install."""
import argparse, dataclasses, fcntl, json, os, pathlib, pty, re, select, shlex, signal, struct, subprocess, sys, tempfile, termios, time

from project import ROOT, Failed

FIXTURES = ROOT / "fixtures/v1/sessions"
WIDTH, HEIGHT = 100, 40
# The variables of a person who has set none, apart from HOME.
ENVIRONMENT = {"PATH": "/bin", "TERM": "xterm-256color", "LESSHISTFILE": "-"}
# The last row of a pager that waits for a key: `less`, and that of busybox.
PAGER_WAITS = re.compile(r"^(:|\(END\)|-- ?More ?--.*)$")
MAX_SECONDS = 60
# The session that `repair ID` repairs: its last line is cut off.
DAMAGED = "torn-tail"
# What a person must see after a command: the exit code and a part of the screen, with an empty home and with `count` sessions.
EXPECTED = {
    "": ((0, "no sessions yet"), (0, "{count} sessions")),
    "search": ((1, "no sessions yet"), (0, "not found")),
    "usage": ((0, "no sessions yet"), (0, "total $")),
    "keep": ((2, "no sessions yet"), (0, "kept {count} sessions,")),
    "verify": ((0, "no sessions yet"), (3, "lossy")),
    "repair": ((2, "no sessions yet"), (0, "L-TORN-TAIL")),
}
# What nobody should see, whatever the home is.
NEVER = ("panicked", "os error", "\ufffd")


def readme_lines():
    """the commands of README's first screen as lists of words, and after each those that its comment names"""
    block = re.search(r"^## Start\n+```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    for line in block[1].splitlines():
        typed, _, comment = line.partition("#")
        yield shlex.split(typed)
        yield from (shlex.split(named) for named in re.findall(r"`(transcript [^`]+)`", comment))


def searched_words():
    """what README searches for"""
    (words,) = (words for words in readme_lines() if words[1:2] == ["search"])
    return words[2]


def named_sessions():
    """(name of the fixture, its id or a made one, its content)"""
    for number, path in enumerate(sorted(FIXTURES.glob("*.jsonl"))):
        content = path.read_bytes()
        found = re.search(rb'"sessionId": ?"([0-9a-f]{8}-[0-9a-f-]{27})"', content)
        yield path.stem, found[1].decode() if found else f"00000000-0000-4000-8000-{number:012}", content


def session_with(text):
    """a session in which a text was said: a fixture whose first prompt has it, under another id"""
    lines = [json.loads(line) for line in (FIXTURES / "linear.jsonl").read_text().splitlines()]
    session = "5ea2c4ed-0000-4000-8000-000000000001"
    first = next(line for line in lines if line["type"] == "user")
    first["message"]["content"] += f" The almanac says: page {text}."
    for line in lines:
        line["sessionId"] = session
    return session, "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()


def write_homes(folder):
    """makes the folders `none` and `some` in a folder, one empty and one with sessions; returns the ids of these by the names of their fixtures"""
    (folder / "none").mkdir(parents=True)
    project = folder / "some/.claude/projects/-home-ada-src-almanac"
    project.mkdir(parents=True)
    # As Claude Code makes them.
    for made in (project, project.parent, project.parent.parent):
        made.chmod(0o700)
    sessions = {name: (session, content) for name, session, content in named_sessions()}
    sessions["searched"] = session_with(searched_words())
    for session, content in sessions.values():
        file = project / f"{session}.jsonl"
        file.write_bytes(content)
        file.chmod(0o600)
    return {name: session for name, (session, _) in sessions.items()}


class Screen:
    """what a terminal shows of a program that prints text, moves the cursor and clears; it has no colours"""

    SEQUENCE = re.compile(r"\x1b\[([?>]?[\d;]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[^\[\]]|([\s\S])")

    def __init__(self, output):
        self.rows, self.x, self.y = {}, 0, 0
        for arguments, command, character in (match.groups() for match in self.SEQUENCE.finditer(output)):
            if command == "H":
                row, _, column = arguments.partition(";")
                self.y, self.x = int(row or 1) - 1, int(column or 1) - 1
            elif command == "J" or (command in ("h", "l") and arguments == "?1049"):
                self.rows, self.x, self.y = {}, 0, 0
            elif character == "\n":
                self.y += 1
            elif character == "\r":
                self.x = 0
            elif character:
                self.rows.setdefault(self.y, {})[self.x] = character
                self.x += 1

    def __str__(self):
        lines = []
        for y in range(max(self.rows, default=-1) + 1):
            row = self.rows.get(y, {})
            lines.append("".join(row.get(x, " ") for x in range(max(row, default=-1) + 1)).rstrip())
        return "\n".join(lines)


@dataclasses.dataclass
class Typed:
    """a command as a person sees it"""

    line: str
    home: str
    code: int
    seconds: float
    screen: str


class Terminal:
    """a terminal on which programs run, one after the other"""

    def __init__(self, width=WIDTH):
        self.width = width

    def run(self, command, environment, until=None, folder=None):
        """runs a program and returns (exit code, screen); one that does not end is left with Ctrl-C when the screen has `until`, a pager with q"""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, self.width, 0, 0))
        program = subprocess.Popen(
            [*map(str, command)], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=folder, start_new_session=True
        )
        os.close(theirs)
        output, shown, end = b"", "", time.monotonic() + MAX_SECONDS
        while time.monotonic() < end:
            if select.select([ours], [], [], 0.05)[0]:
                try:
                    piece = os.read(ours, 65536)
                except OSError:  # Linux reports the end of a terminal as an error.
                    break
                if not piece:
                    break
                output += piece
            elif not shown:
                screen = str(Screen(output.decode(errors="replace")))
                key = b"\x03" if until and until in screen else b"q" if PAGER_WAITS.match(screen.rpartition("\n")[2]) else b""
                if key:
                    shown = screen
                    os.write(ours, key)
        os.close(ours)
        try:
            code = program.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
            code = -1
        return code, shown or str(Screen(output.decode(errors="replace")))


def type_all(command, homes, sessions, inside, width=WIDTH):
    """types all lines with both homes; `command` starts the program, for which the folder `homes` has the path `inside`"""
    terminal = Terminal(width)
    for number, home in enumerate(("none", "some")):
        environment = {**ENVIRONMENT, "HOME": f"{inside}/{home}"}
        for words in readme_lines():
            name = words[1] if words[1:] else ""
            if name not in EXPECTED:
                raise Failed(f"release/first_screen.py does not say what `transcript {name}` should print")
            arguments = [sessions[DAMAGED] if word == "ID" else word for word in words[1:]]
            code, part = EXPECTED[name][number]
            part = part.format(count=len(sessions))
            start = time.monotonic()
            found, screen = terminal.run([*command, *arguments], environment, None if name else part)
            typed = Typed(shlex.join(["transcript", *arguments]), home, found, time.monotonic() - start, screen)
            yield typed, fault(typed, code, part, homes / home)


def examples(readme, language):
    """the first examples of a package: a session of its own, and what stands in the place of the SDK"""
    return re.findall(rf"^```{language}\n(.*?)^```", readme.read_text(), re.M | re.S)[:2]


def run_examples(interpreter, blocks, suffix, folder):
    """runs the examples of a package, which is installed in a folder, with both homes"""
    homes = folder / "homes"
    sessions = write_homes(homes)
    for home in ("none", "some"):
        work = folder / f"work-{home}"
        work.mkdir()
        for number, block in enumerate(blocks):
            file = work / f"example-{number}{suffix}"
            file.write_text(block)
            environment = {**ENVIRONMENT, "HOME": str(homes / home)}
            start = time.monotonic()
            code, screen = Terminal().run([interpreter, file.name], environment, folder=work)
            typed = Typed(f"{interpreter.name} {file.name}", home, code, time.monotonic() - start, screen)
            # The second one prints the sessions, of which there are none in an empty home.
            named = [session for session in sessions.values() if session in screen]
            expected = min(10, len(sessions)) if number == 1 and home == "some" else 0
            wrong = fault(typed, 0, "", homes / home)
            yield typed, wrong or (f"prints {len(named)} sessions, not {expected}" if len(named) != expected else None)


def fault(typed, code, part, home):
    """what is wrong with a screen; None if nothing is"""
    if typed.code != code:
        return f"ends with {typed.code}, not {code}"
    if part not in typed.screen:
        return f"does not print `{part}`"
    if found := next((word for word in NEVER if word in typed.screen), None):
        return f"prints `{found}`"
    made = [path.relative_to(home).as_posix() for path in home.rglob("*")] if typed.home == "none" else []
    return f"makes {', '.join(made)} in an empty home" if made else None


def summary(typed):
    """seconds and exit codes of the lines, for a table"""
    for home, name in (("none", "empty home"), ("some", "with sessions")):
        lines = [line for line in typed if line.home == home]
        codes = " ".join(str(line.code) for line in lines)
        yield f"{name} {sum(line.seconds for line in lines):.1f} s, exits {codes}"


def report(typed):
    """everything that was typed, with its screens"""
    parts = []
    for line in typed:
        home = "an empty home" if line.home == "none" else "sessions"
        parts.append(f"── {home} ── $ {line.line} ── exit {line.code}, {line.seconds:.2f} s\n{line.screen}\n")
    return "\n".join(parts)


def check(command, homes, sessions, inside=None, shown=None):
    """types the lines of README; see `judge`"""
    return judge([*type_all(command, homes, sessions, inside or homes)], shown)


def check_examples(interpreter, readme, language, folder, shown):
    """runs the examples of the README of a package; see `judge`"""
    suffix = {"python": ".py", "js": ".mjs"}[language]
    return judge([*run_examples(interpreter, examples(readme, language), suffix, folder)], shown)


def judge(lines, shown):
    """writes what lines showed to the file `shown`, and fails with the first that did something else; returns a summary"""
    typed = [line for line, _ in lines]
    if shown:
        shown.parent.mkdir(parents=True, exist_ok=True)
        shown.write_text(report(typed))
    for line, wrong in lines:
        if wrong:
            raise Failed(f"`{line.line}` {wrong} ({line.home}):\n{line.screen}")
    return "; ".join(summary(typed))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--width", type=int, default=WIDTH, help="columns of the terminal")
    a.add_argument("program", metavar="PROGRAM", type=pathlib.Path)
    o = a.parse_args()
    with tempfile.TemporaryDirectory(prefix="transcript-homes-") as folder:
        homes = pathlib.Path(folder)
        sessions = write_homes(homes)
        lines = [*type_all([o.program.absolute()], homes, sessions, homes, o.width)]
    print(report([line for line, _ in lines]))
    wrong = [(line, fault) for line, fault in lines if fault]
    for line, fault in wrong:
        print(f"wrong: `{line.line}` ({line.home}) {fault}")
    print(*summary([line for line, _ in lines]), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
