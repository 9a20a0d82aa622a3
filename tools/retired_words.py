#!/usr/bin/env python3
"""tools/retired_words.py [--all] [FILE…]

Looks for words that docs/glossary.md has retired, in comments, identifiers, help and documents, and for words of the reference where people look first
(README, the guide, the pages of packages, the first line of the help of each command). Exits with 1 when there are any. Retired words that the glossary
marks with a star have legitimate uses as well: they are shown with --all only, and never fail. Needs nothing but Python."""
import argparse, pathlib, re, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Names and texts that are not ours: an algorithm and a provider of libraries, a field and a text of the client.
QUOTED = ("Algorithm::Patience", "crypto::ring", "renderedBesideToolResult", "rendered_beside_tool_result", "[media left out: ", "existing plan file to understand what was previously")
# Names that callers use, texts that users see, the user of the system and a model in a test: to change them is another matter than to word a sentence.
KEPT = ("without it nobody can read the archive", "user nobody", '"nobody-knows"')
# Endings of identifiers, which are fine as words of a sentence.
IDENTIFIERS = ((re.compile(r"\w*_alone\b"), "only, or the property itself"),)
# The glossary names the words; the change log and decisions describe the past; fixtures are quoted.
EXCLUDED = ("docs/glossary.md", "docs/decisions/", "CHANGELOG.md", "fixtures/", "tools/retired_words.py", "/snapshots/")


# What people see first. Crates that are parts of the engine are for programmers: their pages are reference.
SEEN_FIRST = ("README.md", "docs/README.md", "docs/guide/*.md", "crates/transcript-cli/README.md", "crates/transcript-engine/README.md", "bindings/*/README.md")
ABOUT_A_COMMAND = ("archive", "browse", "findings", "listing", "moving", "page", "redaction", "repair", "search", "tail", "usage")
ABOUT_THE_ENGINE = ("docs/guide/embed.md", "crates/transcript-engine/README.md", "bindings/*/README.md")
# The types of arguments of commands: the first line of the comment is what lists of commands show.
ARGUMENTS = re.compile(r"^(?:pub(?:\(crate\))? )?struct (?:Args|Cli|Completions|Man)\b")


def table(heading):
    """(pattern, replacement, mark of the row) of each word in the table below a heading of the glossary; a mark is `*`, `†` or nothing"""
    text = (ROOT / "docs/glossary.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = text.split("| --- | --- |")[1].splitlines()
    for row in rows:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        if len(cells) != 2:
            continue
        words, mark = re.fullmatch(r"(.*?)\s*(\\\*|†)?", cells[0]).groups(default="")
        words, mark = words.replace("\\|", "|"), mark.removeprefix("\\")
        for word in words.split(", "):
            yield re.compile(r"(?<![a-zA-Z])(%s)(?![a-zA-Z])" % word, re.I), cells[1], mark


def without_code(text):
    """a page without its code, the targets of its links and its other addresses, on the same lines"""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])
    for kind in (r"^ *(```+).*\n(?:.*\n)*? *\1 *$", r"`[^`]*`", r"\[[^\] ]*\.\w+\]\([^)]*\)", r"\]\([^)]*\)"):
        text = re.sub(kind, blank, text, flags=re.M)
    return text


def seen_first():
    """(file, line number, text, the marks of the rows that hold there) of each line that people see first, or that is about one command"""
    engine = {path for pattern in ABOUT_THE_ENGINE for path in ROOT.glob(pattern)}
    marks = {path: ("", "†") if path in engine else ("", "*", "†") for pattern in SEEN_FIRST for path in ROOT.glob(pattern)}
    marks |= {ROOT / "docs" / f"{name}.md": ("†",) for name in ABOUT_A_COMMAND}
    for path in sorted(marks):
        for number, line in enumerate(without_code(path.read_text()).splitlines(), 1):
            yield path, number, line, marks[path]
    summaries = [summary for path in sorted(ROOT.glob("crates/transcript-cli/src/**/*.rs")) for summary in summaries_of(path)]
    if len(summaries) < 20:
        sys.exit("tools/retired_words.py finds the help of %d commands only" % len(summaries))
    yield from summaries


def summaries_of(path):
    lines = path.read_text().splitlines()
    for number in (number for number, line in enumerate(lines) if ARGUMENTS.match(line)):
        while number > 0 and lines[number - 1].strip() and not lines[number].startswith("///"):
            number -= 1
        while number > 0 and lines[number - 1].startswith("///"):
            number -= 1
        yield path, number + 1, lines[number].removeprefix("/// "), ("", "*", "†")


def prose(path, text):
    """the parts of a file that people read, as (line number, text)"""
    for quoted in QUOTED + KEPT:
        text = text.replace(quoted, "")
    for number, line in enumerate(text.splitlines(), 1):
        if path.suffix == ".rs":
            # Comments, names, and texts; string literals of tests hold recorded texts.
            if "/tests/" in str(path) or "/benches/" in str(path):
                line = line[line.index("//"):] if "//" in line else ""
            yield number, line.replace("_", " ")
        else:
            yield number, line


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--all", action="store_true", help="also show words that have legitimate uses")
    a.add_argument("files", nargs="*", type=pathlib.Path)
    o = a.parse_args()
    words, to_people = list(table("Retired words")), list(table("Said to people"))
    if not words or not to_people:
        sys.exit("docs/glossary.md lacks one of its tables of words")
    files = o.files or [f for pattern in ("crates/**/*.rs", "bindings/**/src/*.rs", "docs/**/*.md", "*.md") for f in sorted(ROOT.glob(pattern))]
    failed = 0
    for path in files:
        name = str(path.resolve().relative_to(ROOT))
        if any(part in name for part in EXCLUDED):
            continue
        text = path.read_text()
        if path.suffix == ".rs":
            for number, line in enumerate(text.splitlines(), 1):
                for pattern, instead in IDENTIFIERS:
                    if found := pattern.search(line):
                        failed += 1
                        print("%s:%d: %s (use: %s)" % (name, number, found[0], instead))
        for number, line in prose(path, text):
            for pattern, instead, mark in words:
                if (o.all or not mark) and (found := pattern.search(line)):
                    failed += not mark
                    print("%s:%d: %s (use: %s)" % (name, number, found[0], instead))
    for path, number, line, marks in seen_first() if not o.files else ():
        for pattern, instead, mark in to_people:
            if mark in marks and (found := pattern.search(line)):
                failed += 1
                print("%s:%d: %s (to people: %s)" % (path.relative_to(ROOT), number, found[0], instead))
    if failed:
        sys.exit("%d retired words; docs/glossary.md says what to use" % failed)


if __name__ == "__main__":
    main()
