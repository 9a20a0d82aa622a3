#!/usr/bin/env python3
"""Writes docs/images/terminal.svg, the picture in README.md: what the commands print on a terminal, in colour.

    python3 tools/picture.py [--check] [--bin target/release/transcript]

Makes the sessions of tools/tour_sessions.py in a temporary folder, runs each command of SCREEN on a terminal of its own, and
draws the rows as text of an SVG, for light and dark pages. `--check` writes nothing and exits with 1 if the picture is out of
date. Needs a Unix and nothing but Python.
"""
import fcntl, html, os, pathlib, pty, re, struct, subprocess, sys, termios, unicodedata

import tour_sessions

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = 96
# Each command, and the number of rows that are drawn of what it prints; the other rows are one row with dots.
SCREEN = [("transcript search relay -n 2", 4), ("transcript replay 5aa0", 23)]

# The size of a cell: a font of 14 pixels, of which a letter takes 0.6 in nearly every monospaced font.
CELL, ROW, MARGIN = 8.4, 19, 18
# For each class of text its colour on a light and on a dark page.
COLOURS = {"fg": ("#1f2328", "#e6edf3"), "dim": ("#59636e", "#9198a1"), "red": ("#b3202a", "#ff8f87"), "green": ("#11652c", "#5fd078"),
           "yellow": ("#7a4d00", "#e3b341"), "blue": ("#0756b8", "#79b8ff"), "magenta": ("#7a3aa8", "#d2a8ff"), "cyan": ("#0f6674", "#56d4dd")}
BACKGROUND, BORDER = ("#f6f8fa", "#0d1117"), ("#d0d7de", "#3d444d")
SGR_COLOURS = ["dim", "red", "green", "yellow", "blue", "magenta", "cyan", "fg"]


def printed(command, folder, binary):
    """what a command prints on a terminal, with its colours"""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environment = {"HOME": tour_sessions.HOME, "TZ": "UTC", "TERM": "xterm-256color", "LANG": "C.UTF-8", "PAGER": "cat",
                   "PATH": f"{binary.parent}:{os.environ['PATH']}", "CLAUDE_CONFIG_DIR": str(folder)}
    run = subprocess.Popen(["/bin/sh", "-c", command], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=environment)
    os.close(theirs)
    output = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux reports the end of a terminal as an error.
            break
        if not piece:
            break
        output += piece
    os.close(ours)
    if run.wait() != 0:
        sys.exit(f"{command}: exit code {run.returncode}")
    return output.decode().replace("\r\n", "\n")


def classes(style):
    """the classes of text of this style: a set of the numbers of SGR"""
    colour = next((SGR_COLOURS[code % 10] for code in sorted(style, reverse=True) if 30 <= code < 38 or 90 <= code < 98), "fg")
    weak = colour == "fg" and 2 in style
    return " ".join(["dim" if weak else colour, *(["bold"] if 1 in style else []), *(["italic"] if 3 in style else []),
                     *(["underline"] if 4 in style else []), *(["marked"] if 7 in style else [])])


def runs(row, style):
    """(column, text, classes) of each piece of a row that has one style; `style` is changed for the next row"""
    column = 0
    for piece in re.split(r"(\x1b\[[0-9;]*m)", row):
        if not piece.startswith("\x1b["):
            if piece.strip() or 7 in style:
                yield column, piece, classes(style)
            column += sum(cells(letter) for letter in piece)
            continue
        codes = [int(code or 0) for code in piece[2:-1].split(";")]
        if codes[0] in (38, 48):
            sys.exit(f"a colour that this script does not draw: {codes}")
        for code in codes:
            if code == 0:
                style.clear()
            elif code == 22:
                style -= {1, 2}
            elif 23 <= code <= 29:
                style.discard(code - 20)
            else:
                if code >= 30:
                    style -= {*range(30, 39), *range(90, 98)}
                style.add(code)


def cells(letter):
    return 0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def shown(folder, binary):
    """the rows of the screen, each a list of pieces"""
    for number, (command, rows) in enumerate(SCREEN):
        if number:
            yield []
        yield [(0, "$ ", "green bold"), (2, command, "fg bold")]
        printed_rows, style = printed(command, folder, binary).rstrip("\n").split("\n"), set()
        for row in printed_rows[:rows]:
            yield [*runs(row, style)]
        if len(printed_rows) > rows:
            yield [(0, "···", "dim")]


def drawn(rows):
    """the picture"""
    width, height = round(COLUMNS * CELL + 2 * MARGIN), len(rows) * ROW + 2 * MARGIN

    def colours(number):
        yield f".page{{fill:{BACKGROUND[number]};stroke:{BORDER[number]}}}"
        yield from (f".{name}{{fill:{pair[number]}}}" for name, pair in COLOURS.items())
        yield f".bar{{fill:{COLOURS['yellow'][number]};opacity:.25}}"

    text, bars = [], []
    for number, row in enumerate(rows):
        y = MARGIN + number * ROW
        for column, piece, names in row:
            start, wide = MARGIN + column * CELL, sum(map(cells, piece)) * CELL
            if "marked" in names:
                bars.append(f'<rect class="bar" x="{start:.1f}" y="{y}" width="{wide:.1f}" height="{ROW}"/>')
            # The length holds the columns together, whatever font the reader has.
            text.append(f'<text x="{start:.1f}" y="{y + 14}" textLength="{wide:.1f}" class="{names}">{html.escape(piece, quote=False)}</text>')
    commands = ", ".join(command for command, _ in SCREEN)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
        f"<title>A terminal with the output of {html.escape(commands, quote=False)}</title>",
        "<style>",
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace;white-space:pre}",
        ".bold{font-weight:bold}.italic{font-style:italic}.underline{text-decoration:underline}",
        *colours(0),
        "@media (prefers-color-scheme:dark){", *colours(1), "}",
        "</style>",
        f'<rect class="page" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>',
        *bars, *text, "</svg>", ""])


def picture(folder, binary):
    return drawn([*shown(folder, binary)])


if __name__ == "__main__":
    tour_sessions.main(__doc__, ROOT / "docs/images/terminal.svg", picture)
