#!/usr/bin/env python3
"""Writes docs/tour.md: the output of the commands on terminals of 100x40 and 60x20.

    python3 tools/tour.py [--check] [--bin target/release/transcript]

Makes the sessions of tools/tour_sessions.py in a temporary folder, types the commands into a tmux server of its own, and
captures the panes. `--check` writes nothing and exits with 1 if docs/tour.md is out of date. Needs tmux and less.
"""
import os, pathlib, subprocess, sys, time

import tour_sessions

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Terminal:
    """A tmux server with one pane, in which a shell runs."""

    def __init__(self, folder, binary):
        self.socket, self.shown = folder / "tmux", ""
        (folder / "bin").mkdir()
        (folder / "bin" / "transcript").symlink_to(binary)
        self.environment = {"HOME": tour_sessions.HOME, "TZ": "UTC", "TERM": "screen-256color", "LANG": "C.UTF-8", "PS1": "$ ",
                            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "CLAUDE_CONFIG_DIR": str(folder), "SHELL": "/bin/sh"}
        self.tmux("start-server", ";", "set", "-g", "status", "off", ";", "set", "-g", "default-terminal", "screen-256color",
                  ";", "new-session", "-d", "-x", "100", "-y", "40", "/bin/sh")
        self.wait("$")

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-S", str(self.socket), "-f", "/dev/null", *arguments], env=self.environment,
                              check=True, capture_output=True, text=True).stdout

    def screen(self):
        return "\n".join(line.rstrip() for line in self.tmux("capture-pane", "-p").split("\n")).rstrip("\n")

    def wait(self, *texts, absent=()):
        """Waits until all texts, and none of the absent ones, are on the screen, and it has stopped changing."""
        end, last, same = time.monotonic() + 8, None, 0
        while time.monotonic() < end:
            now = self.screen()
            same = same + 1 if now == last else 0
            if same >= 4 and all(text in now for text in texts) and not any(text in now for text in absent):
                self.shown = now
                return
            last = now
            time.sleep(0.03)
        missing = [text for text in texts if text not in now]
        sys.exit(f"these did not appear: {missing}; or these did not go: {list(absent)}\n{now}")

    def resize(self, columns, rows):
        """Resizes the pane, and waits until programs see it: tmux tells them later."""
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))
        terminal = os.open(self.tmux("display", "-p", "#{pane_tty}").strip(), os.O_RDONLY | os.O_NOCTTY)
        end = time.monotonic() + 8
        while os.get_terminal_size(terminal) != (columns, rows) and time.monotonic() < end:
            time.sleep(0.03)
        os.close(terminal)

    def run(self, command, *texts):
        """Types a command at an empty prompt."""
        self.tmux("send-keys", "-l", "clear; " + command)
        self.tmux("send-keys", "Enter")
        self.wait(*texts, absent=["clear; "])

    def keys(self, keys, *texts, absent=()):
        """Keys are separated by spaces; a word with a leading = is typed letter by letter."""
        for key in keys.split():
            self.tmux(*(["send-keys", "-l", key[1:]] if key.startswith("=") else ["send-keys", key]))
        self.wait(*texts, absent=absent)

    def close(self):
        self.tmux("kill-server")


def tour(terminal, out):
    def say(text):
        out.append(text.strip() + "\n")

    def pane(command=None):
        out.append("```text\n" + (f"$ {command}\n" if command else "") + terminal.shown + "\n```\n")

    def small(*texts):
        terminal.resize(60, 20)
        terminal.wait(*texts)
        pane()
        terminal.resize(100, 40)

    say("# A tour")
    say("""
This page shows what the commands print on terminals of 100 columns and 40 lines, and of 60 and 20, without colour.
`python3 tools/tour.py` makes it, with sessions of people and projects that do not exist
([tools/tour_sessions.py](../tools/tour_sessions.py)): one with many calls, one that was compacted twice, one with
subagents, an image and a rewind, and nine of a nightly job. Times are UTC.""")

    say("## Find a session")
    say("""`transcript list` shows the most recent conversation first. All nightly sessions start with the same prompt, so the words after
`›` tell them apart. The first characters of an id are enough for every command.""")
    terminal.run("transcript list", "Tide chart", "No report")
    pane("transcript list")
    say("On a small terminal, folder and title stay:")
    terminal.resize(60, 20)
    terminal.run("transcript list", "No report")
    pane("transcript list")
    terminal.resize(100, 40)
    say("`--text` looks in titles, prompts, folders and branches:")
    terminal.run("transcript list --text invoice", "Invoices")
    pane("transcript list --text invoice")

    say("## Read the whole story")
    say("""`transcript replay` prints a session from its first prompt, in a pager: Space is the next page, `/` searches, `q` leaves.
The header says what and where it is.""")
    terminal.run("transcript replay 5aa0", "Invoices", ":")
    pane("transcript replay 5aa0")
    say("""This session was compacted twice. What the model no longer sees comes first; a ruled line ends each chapter. `/══` and `n` go from
one to the next.""")
    terminal.keys("=/══ Enter", "chapter 1", absent=["/══"])
    pane()
    terminal.keys("n", "chapter 2")
    pane()
    terminal.keys("q", "$")
    say("The same at 60x20. `G` goes to the end, where the command is that continues the session:")
    terminal.resize(60, 20)
    terminal.run("transcript replay 5aa0", ":")
    pane("transcript replay 5aa0")
    terminal.keys("=/══ Enter", "chapter 1", absent=["/══"])
    pane()
    terminal.keys("G", "to continue")
    pane()
    terminal.keys("q", "$")
    terminal.resize(100, 40)
    say("""`--in-context` starts at the last compaction, with what the model sees now. `--ids` shows what `--at`, `--leaf` and `fork` take:""")
    terminal.run("transcript replay 5aa0 --in-context --ids", ":")
    pane("transcript replay 5aa0 --in-context --ids")
    terminal.keys("q", "$")

    say("## Subagents, images, branches")
    say("""`--sidechains` shows each subagent below the call that started it, and `--all-branches` what a rewind has left.
`--tool Agent` and the like choose what is shown.""")
    terminal.run("transcript replay fbb6 --sidechains --all-branches", ":")
    terminal.keys("=/subagent Enter", "subagent", absent=["/subagent"])
    pane("transcript replay fbb6 --sidechains --all-branches")
    terminal.keys("q", "$")
    say("`transcript tree` shows the branches of a session:")
    terminal.run("transcript tree fbb6", "recover")
    pane("transcript tree fbb6")

    say("## Go on")
    say("""`transcript resume` says whether a session can be resumed, where it stands, and how. `--explain` has the details, `--request`
prints the messages.""")
    terminal.run("transcript resume 5aa0", "claude --resume")
    pane("transcript resume 5aa0")
    terminal.resize(60, 20)
    terminal.run("transcript resume fbb6", "to continue")
    pane("transcript resume fbb6")
    terminal.resize(100, 40)

    say("## Search")
    say("""`transcript search` finds texts in all sessions, compacted or not. What it prints above each text is what `replay` and `browse`
take ([search.md](search.md)).""")
    terminal.run("transcript search relay -n 4", "of ")
    pane("transcript search relay -n 4")
    terminal.resize(60, 20)
    terminal.run("transcript search relay -n 2", "of ")
    pane("transcript search relay -n 2")
    terminal.resize(100, 40)

    say("## Browse")
    say("""`transcript browse`, or `transcript` alone, shows the sessions at the left and the end of the selected one at the right. Letters
filter the list, Enter reads, `?` shows all keys.""")
    terminal.run("transcript browse", "Tide chart", "preview.example")
    pane("transcript browse")
    small("Tide chart")
    say("Typing `invoice` leaves one session, and Enter opens it at its end:")
    terminal.wait("Tide chart", "preview.example")
    terminal.keys("=invoice Enter", "Shall I")
    pane()
    say("At 60x20 one side is shown at a time; Tab changes it:")
    small("Shall I")
    terminal.wait("Shall I")
    say("`p` opens the outline, all prompts of the session. Letters filter it, Enter goes there:")
    terminal.keys("p", "Turn it on")
    pane()
    small("today")
    terminal.keys("=staging Enter", "Staging has it", absent=["Turn it on"])
    pane()
    say("The end of a chapter, where the session was compacted. `g` and `G` go to the start and the end:")
    terminal.keys("p", "Turn it on")
    terminal.keys("=mailboxes Enter", "They recover", absent=["Turn it on"])
    terminal.keys("u", "chapter 1 of 3")
    pane()
    terminal.keys("p", "Turn it on")
    terminal.keys("=staging Enter", "Staging has it", absent=["Turn it on"])
    say("`/` searches the text, also what is folded, and `n` goes to the next hit:")
    terminal.keys("=/accepted Enter", "accepted")
    pane()
    small("accepted")
    say("Ctrl-F searches all sessions, with the queries of `transcript search`. Enter opens a hit, and Esc leads back to the others:")
    terminal.keys("C-f =relay", "hits")
    pane()
    small("hits")
    terminal.keys("Escape", "accepted", absent=["relay▏"])
    terminal.keys("q", "$")


def pages(folder, binary):
    terminal, out = Terminal(folder, binary), []
    try:
        tour(terminal, out)
    finally:
        terminal.close()
    return "\n".join(out)


if __name__ == "__main__":
    tour_sessions.main(__doc__, ROOT / "docs/tour.md", pages)
