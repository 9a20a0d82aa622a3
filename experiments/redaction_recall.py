#!/usr/bin/env python3
"""Measures how many planted secrets `transcript export` leaves, in all formats.

Draws secrets of every kind in fixtures/secrets/*.tsv, puts each into a session as seven tools print it, exports the
session in four formats and looks for traces: ten characters in a row of a secret, or all of a shorter one. Prints a
table by class, and the kinds that are left. The lines in the page, which `transcript import` reads, are looked at, too.

usage: redaction_recall.py --bin PATH [--seed N]
"""
import argparse
import collections
import html
import json
import pathlib
import random
import re
import string
import subprocess
import tempfile

TRACE = 10
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "fixtures/secrets"
CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "lower": string.ascii_lowercase + string.digits,
    "upper": string.ascii_uppercase + string.digits,
    "alpha": string.ascii_letters,
    "digit": string.digits,
    "hex": string.digits + "abcdef",
    "HEX": string.digits + "ABCDEF",
    "b64": string.ascii_letters + string.digits + "+/",
    "b64url": string.ascii_letters + string.digits + "-_",
    "word": string.ascii_letters + string.digits + "_",
}


def alphabet(name):
    if name in CLASSES:
        return CLASSES[name]
    letters = re.sub(r"(.)-(.)", lambda pair: "".join(map(chr, range(ord(pair[1]), ord(pair[2]) + 1))), name[1:-1])
    return letters


def draw(template, rng):
    template = template.replace("{uuid}", "{hex:8}-{hex:4}-4{hex:3}-a{hex:3}-{hex:12}")

    def run(match):
        low, _, high = match[2].partition("-")
        letters = alphabet(match[1])
        return "".join(rng.choice(letters) for _ in range(rng.randint(int(low), int(high or low))))

    return re.sub(r"\{(\[.*?\]|\w+):(\d+(?:-\d+)?)\}", run, template)


def by_line(text, make):
    return "\n".join(make(number, line) for number, line in enumerate(text.split("\n"), 1))


def grep(number, line):
    half = len(line) // 2
    return f"\x1b[35m\x1b[Kconf/app.env\x1b[m\x1b[K:{number}:{line[:half]}\x1b[01;31m\x1b[K{line[half:]}\x1b[m\x1b[K"


RENDERINGS = {
    "plain": lambda text: {"content": f"before\n{text}\nafter"},
    "numbered": lambda text: {"content": by_line(text, lambda number, line: f"{number:6}\u2192{line}")},
    "grep": lambda text: {"content": by_line(text, grep)},
    "patch": lambda text: {"patch": [f"-{line}" for line in text.split("\n")]},
    "json twice": lambda text: {"content": json.dumps({"output": json.dumps({"stdout": text, "code": 0})})},
    "indented": lambda text: {"content": by_line(text, lambda _, line: f"    > {line}")},
    "wrapped": lambda text: {
        "content": "\n".join(line[at : at + 100] for line in text.split("\n") for at in range(0, max(1, len(line)), 100))
    },
}


def session(samples):
    """Returns lines: a call and its result for each sample."""
    parent, lines = None, []

    def entry(kind, number, **rest):
        nonlocal parent
        uuid = f"{number:08x}-0000-4000-8000-000000000000"
        lines.append(json.dumps({"type": kind, "uuid": uuid, "parentUuid": parent, "timestamp": "2026-03-04T05:06:07.000Z", **rest}))
        parent = uuid

    entry("user", 0, message={"role": "user", "content": "look at these"})
    for number, sample in enumerate(samples):
        call = f"toolu_{number:06}"
        use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "show"}}
        entry("assistant", 2 * number + 1, message={"role": "assistant", "id": f"m{number}", "content": [use]})
        shown = RENDERINGS[sample["rendering"]](sample["text"])
        result = {"type": "tool_result", "tool_use_id": call, "content": shown.get("content", "done")}
        more = {}
        if "patch" in shown:
            hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": shown["patch"]}
            more = {"toolUseResult": {"filePath": "/a", "oldString": "", "newString": "", "structuredPatch": [hunk]}}
        entry("user", 2 * number + 2, message={"role": "user", "content": [result]}, **more)
    return lines


def traces(sample):
    """Returns the texts of which none may be left."""
    found = set()
    for part in sample["secret"].split("\n"):
        letters = re.sub(r"\s", "", part)
        if len(letters) >= 4:
            size = min(TRACE, len(letters))
            found.update(letters[at : at + size] for at in range(len(letters) - size + 1))
    return found


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--bin", required=True)
    arguments.add_argument("--seed", type=int, default=39)
    arguments = arguments.parse_args()
    rng = random.Random(arguments.seed)
    samples = []
    for table in sorted(FOLDER.glob("*.tsv")):
        for row in table.read_text().split("\n")[1:]:
            if not row:
                continue
            kind, group, secret, context = (column.replace("\\n", "\n") for column in row.split("\t"))
            for rendering in RENDERINGS:
                drawn = draw(secret, rng)
                samples.append(
                    {"table": table.stem, "kind": kind, "class": group, "rendering": rendering, "secret": drawn, "text": context.replace("@", drawn, 1)}
                )
    owners = collections.defaultdict(set)
    for number, sample in enumerate(samples):
        for trace in traces(sample):
            owners[trace].add(number)
    # What several secrets have in common, such as the header of a web token, says nothing about one of them.
    owners = {trace: numbers for trace, numbers in owners.items() if len(numbers) == 1}
    sizes = sorted({len(trace) for trace in owners})
    left = collections.defaultdict(set)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "11111111-2222-4333-8444-555555555555.jsonl"
        file.write_text("\n".join(session(samples)) + "\n")
        out = pathlib.Path(folder) / "out"
        for name in ("text", "markdown", "json", "html"):
            command = [arguments.bin, "export", f"--{name}", out, "--force", "--tools", "full", file]
            command += ["--plain"] if name == "html" else []
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            texts = [out.read_text()]
            if name == "html":
                back = pathlib.Path(folder) / "back.jsonl"
                subprocess.run([arguments.bin, "import", out, "--out", back, "--force"], check=True, capture_output=True)
                texts = [html.unescape(re.sub(r"<[^>]*>", "", texts[0])), back.read_text()]
            for text in texts:
                # Escapes and colours may be between the characters.
                text = re.sub(r"\\u001b\[[0-9;]*[A-Za-z]|\x1b\[[0-9;]*[A-Za-z]|\u241b\[[0-9;]*[A-Za-z]", "", text)
                text = re.sub(r"\\+n|\\+t", "", text)
                text = re.sub(r"\\+(?=[\"/])|\s", "", text)
                for size in sizes:
                    for at in range(len(text) - size + 1):
                        for number in owners.get(text[at : at + size], ()):
                            left[number].add(name)
    table = collections.defaultdict(lambda: [0, 0])
    missed = collections.defaultdict(set)
    for number, sample in enumerate(samples):
        for key in ((sample["table"], sample["class"]), (sample["table"], "all")):
            table[key][0] += number not in left
            table[key][1] += 1
        if number in left:
            missed[sample["table"], sample["kind"]].add(sample["rendering"])
    for key, renderings in sorted(missed.items()):
        print(f"{key[0]}: {key[1]}: left in {', '.join(sorted(renderings))}")
    for (name, group), (found, of) in sorted(table.items()):
        print(f"{name}: {group}: {found} of {of} ({100 * found / of:.1f} %)")


if __name__ == "__main__":
    main()
