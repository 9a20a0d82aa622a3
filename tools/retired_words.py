#!/usr/bin/env python3
"""tools/retired_words.py [--all] [FILE…]

Looks for words that docs/glossary.md has retired, in comments, identifiers, help and documents, and exits with 1 when there are any. Words that the
glossary marks with a star have legitimate uses as well: they are shown with --all only, and never fail. Needs nothing but Python."""
import argparse, pathlib, re, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Names and texts that are not ours: an algorithm of a library, a field and a text of the client.
QUOTED = ("Algorithm::Patience", "renderedBesideToolResult", "rendered_beside_tool_result", "[media left out: ", "existing plan file to understand what was previously")
# Names that callers use, texts that users see, the user of the system and a model in a test: to change them is another matter than to word a sentence.
KEPT = ("without it nobody can read the archive", "user nobody", '"nobody-knows"')
# Endings of identifiers, which are fine as words of a sentence.
IDENTIFIERS = ((re.compile(r"\w*_alone\b"), "only, or the property itself"),)
# The glossary names the words; the change log and decisions describe the past; fixtures are quoted.
EXCLUDED = ("docs/glossary.md", "docs/decisions/", "CHANGELOG.md", "fixtures/", "tools/retired_words.py", "/snapshots/")


def retired():
    """(pattern, replacement, whether it only warns) of each row of the table of retired words"""
    text = (ROOT / "docs/glossary.md").read_text()
    rows = text[text.index("## Retired words"):].splitlines()
    for row in rows:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        if len(cells) != 2 or cells[0] in ("retired word", "---"):
            continue
        warns = cells[0].endswith("\\*")
        words = cells[0].removesuffix("\\*").replace("\\|", "|").strip()
        for word in words.split(", "):
            yield re.compile(r"(?<![a-zA-Z])(%s)(?![a-zA-Z])" % word, re.I), cells[1], warns


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
    words = list(retired())
    if not words:
        sys.exit("docs/glossary.md has no table of retired words")
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
            for pattern, instead, warns in words:
                if (o.all or not warns) and (found := pattern.search(line)):
                    failed += not warns
                    print("%s:%d: %s (use: %s)" % (name, number, found[0], instead))
    if failed:
        sys.exit("%d retired words; docs/glossary.md says what to use" % failed)


if __name__ == "__main__":
    main()
