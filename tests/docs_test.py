#!/usr/bin/env python3
"""tests/docs_test.py

Looks through README, the guide, the reference and the pages of packages for commands and options that do not exist: each `transcript COMMAND --option`,
or `COMMAND --option`, in a code block or in code font must be in docs/cli.md, which a test of the command keeps true, and each `make TARGET` in the
Makefile. Compares the tables of features with Cargo.toml and the list of documents with the folder, looks through all documents for links to files and
headings that are not there, and asks whether tools/retired_words.py finds what it should. Exits with 1 when it finds a fault. Needs nothing but Python."""
import argparse, pathlib, re, shlex, shutil, subprocess, sys, tempfile, unicodedata

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Decisions and the change log are about the past.
PAGES = ["README.md", "CONTRIBUTING.md", "docs/*.md", "docs/guide/*.md", "crates/*/README.md", "bindings/*/README.md", "fixtures/*/README.md", "experiments/README.md"]
DOCUMENTS = ["*.md", "docs/**/*.md", "crates/*/README.md", "bindings/*/README.md", "fixtures/**/README.md", "experiments/README.md"]
# Not sent as a command line: a name that another program continues, or a place for one.
NO_COMMANDS = {"COMMAND", "TOPIC", "SESSION", "ID", "FILE"}

FENCE = re.compile(r"^ *(```+|~~~+).*\n(?:.*\n)*? *\1 *$", re.M)
COMMENT = re.compile(r"(^|\s)#.*")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-zA-Z](?![\w-]))")


def without_code(text):
    return re.sub(r"`[^`]*`", "", FENCE.sub("", text))


def blocks(text):
    """(line number, language or nothing, text) of each line in a code block, and of each paragraph outside of them"""
    language, paragraph, start = None, [], 1
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = re.match(r" *(?:```+|~~~+)(\w*)", line)
        if language is None and not fence and line.strip():
            start = start if paragraph else number
            paragraph.append(line)
            continue
        if paragraph:
            yield start, None, " ".join(paragraph)
            paragraph = []
        if fence:
            language = None if language is not None else fence[1]
        elif language is not None:
            yield number, language, line


def code(text):
    """(line number, text) of what was typed: each line of a code block, and each piece in code font"""
    for number, language, block in blocks(text):
        if language is None:
            yield from ((number, piece) for piece in re.findall(r"`([^`]+)`", block))
        # Of what a program prints, only what was typed.
        elif language in ("sh", "json") or language == "text" and block.startswith("$ "):
            yield number, block


def reference():
    """(the options of each command, the options of all commands, those that choose what is shown) by docs/cli.md"""
    sections = re.split(r"^## ", (ROOT / "docs/cli.md").read_text(), flags=re.M)[1:]
    options = {}
    for section in sections:
        heading, _, text = section.partition("\n")
        pieces = (block if language is not None else " ".join(re.findall(r"`([^`]+)`", block)) for _, language, block in blocks(text))
        found = {*OPTION.findall(" ".join(pieces))}
        options.update((name, found) for name in heading.split(", "))
    common = options.pop("Common") | {"-h", "--help", "-V", "--version"}
    chosen = options.pop("Options that choose what is shown")
    names = {name: found for name, found in options.items() if re.fullmatch("[a-z]+", name)}
    # `help` is the parser's own command.
    return {**names, "help": set()}, common, chosen


def command_lines(line):
    """the words of each call of `transcript` or `make` in a line of a shell, a crontab or a hook"""
    line = COMMENT.sub("", line).replace('\\"', '"')
    for start in re.finditer(r"(?:^|(?<!--bin)[\s;|&(\"'])(transcript|make)(?=$|[\s\"'`;|&)])", line):
        call = re.split(r"[;|&<>]|\)$|\s#", line[start.start(1):])[0]
        while True:
            try:
                yield shlex.split(call)
                break
            except ValueError:  # The call is within the quotes of something else.
                call = call[:-1]


def wrong_command(words, commands, common, chosen, targets):
    """what is wrong with a call, or nothing"""
    if words[0] == "make":
        unknown = [word for word in words[1:] if re.fullmatch("[a-z][a-z-]*", word) and word not in targets]
        return f"make has no target {unknown[0]}" if unknown else None
    words = words[1:]
    if not words or words[0].startswith("-"):
        command, allowed = None, common
    elif words[0] in commands:
        command, allowed = words[0], common | commands[words[0]]
        if "--role" in commands[command] or "--since" in commands[command]:
            allowed = allowed | chosen
    elif words[0] in NO_COMMANDS or re.fullmatch(r"[0-9a-f]{4,}.*|.*\.jsonl|latest", words[0]):
        command, allowed = None, common | commands["replay"]
    else:
        return f"there is no command {words[0]}"
    for word in words:
        if word == "--":
            break
        if (option := OPTION.match(word)) and option[1] not in allowed:
            return f"{command or 'transcript'} has no option {option[1]}"
    return None


def wrong_commands(text, *known):
    short = re.compile(rf"(?:{'|'.join(known[0])}) (?:\S+ )*--[a-z]")
    for number, line in code(text):
        line = f"transcript {line}" if short.match(line) else line
        for words in command_lines(line):
            if wrong := wrong_command(words, *known):
                yield number, f"{' '.join(words)}: {wrong}"


def anchors(path):
    """the anchors of the headings of a page, as they are made of their texts"""
    found, seen = {*re.findall(r'<a (?:id|name)="([^"]+)"', path.read_text())}, {}
    for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text()), re.M):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        kept = "".join(c for c in text.lower() if c in " -_" or unicodedata.category(c)[0] in "LN")
        name = kept.strip().replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        found.add(name if seen[name] == 0 else f"{name}-{seen[name]}")
    return found


def wrong_links(page, text):
    for link in re.findall(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)", without_code(text)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists():
            yield f"{link}: there is no such file"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{link}: there is no such heading"


def wrong_features():
    """what the tables of features in the pages of crates have, and Cargo.toml has not, or the other way round"""
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        page = (manifest.parent / "README.md").read_text() if (manifest.parent / "README.md").exists() else ""
        table = re.search(r"^\| feature \| on by default \|.*\n.*\n((?:\|.*\n)*)", page, re.M)
        if not table:
            continue
        section = manifest.read_text().split("\n[features]\n")[1].split("\n[")[0]
        features = {name: re.findall('"(.*?)"', value) for name, value in re.findall(r"^([\w-]+) = (\[[^\]]*\])", section, re.M)}
        default = features.pop("default", [])
        is_default = {name: "yes" if name in default else "no" for name in features}
        said = dict(re.findall(r"^\| `([a-z-]+)` \| (\w+) \|", table[1], re.M))
        if said != is_default:
            yield f"{manifest.parent.name}: README.md has the features {said}, Cargo.toml {is_default}"


def not_in_the_index():
    linked = {(ROOT / "docs" / link).resolve() for link in re.findall(r"\]\(([^)#]+)", (ROOT / "docs/README.md").read_text())}
    for page in pages(["docs/*.md", "docs/guide/*.md", "docs/*/README.md"]):
        if page not in linked and page != ROOT / "docs/README.md":
            yield f"docs/README.md: does not list {page.relative_to(ROOT)}"


def pages(patterns):
    return sorted({path for pattern in patterns for path in ROOT.glob(pattern) if "node_modules" not in path.parts and "target" not in path.parts})


# Each line has a fault that must be found, or none.
FAULTY = ["`transcript nosuch`", "`usage --nosuch`", "`transcript list\n--nosuch`", "`transcript list --nosuch`", "`transcript 12ab34cd --nosuch`", "```sh\ncd x && transcript usage -Z\n```", "`make nosuch`",
          '```json\n{"command": "transcript keep --nosuch"}\n```', "```text\n$ transcript export --nosuch x\n```"]
SOUND = ["`transcript`", "`cargo test --bin transcript nosuch`", "`transcript list --json -n 5`", "```sh\ntranscript search 'a --b' --files | head -3 # --nosuch\n```", "`make test`",
         '```json\n{"command": "transcript keep -q"}\n```', "```text\n--nosuch\n$ transcript replay 12ab\ntranscript nosuch\n```", "```rust\ntranscript nosuch\n```"]


# A page, a line in it, and whether tools/retired_words.py may pass with it.
WORDS = [("README.md", "The leaf of it.", False), ("README.md", "`leaf` and [it](leaf.md)", True), ("docs/guide/find.md", "An entry.", False),
         ("docs/guide/embed.md", "An entry.", True), ("docs/findings.md", "The client reads.", False), ("docs/findings.md", "An entry.", True),
         ("docs/format.md", "The client reads.", True), ("docs/format.md", "This is no session.", False), ("docs/format.md", "There is no session.", True),
         ("crates/transcript-cli/src/tree.rs", "/// Show the leaf\nstruct Args", False), ("crates/transcript-cli/src/tree.rs", "// The leaf", True)]


def missed_words():
    """what tools/retired_words.py misses, or finds without a reason, in a copy of what it reads"""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        shutil.copytree(ROOT / "tools", root / "tools")
        shutil.copytree(ROOT / "docs", root / "docs", ignore=shutil.ignore_patterns("*.png", "*.json", "decisions", "fields.md", "cli.md", "client-behaviour.md", "operations.md", "architecture.md", "tour.md"))
        shutil.copytree(ROOT / "crates/transcript-cli/src", root / "crates/transcript-cli/src")
        shutil.copy(ROOT / "README.md", root)
        for page, line, is_right in WORDS:
            before = (root / page).read_text()
            (root / page).write_text(f"{before}\n{line}\n")
            ran = subprocess.run([sys.executable, "-B", root / "tools/retired_words.py"], capture_output=True, text=True)
            (root / page).write_text(before)
            found = [words for words in ran.stdout.splitlines() if words.startswith(page)]
            if "Traceback" in ran.stderr or bool(found) == is_right:
                yield f"tools/retired_words.py: {page} with {line!r}: exit code {ran.returncode}, {ran.stdout}{ran.stderr}"


def faults_of_this_test(known):
    yield from (f"finds nothing wrong in {text!r}" for text in FAULTY if not [*wrong_commands(text, *known)])
    yield from (f"finds {[*wrong_commands(text, *known)]} in {text!r}" for text in SOUND if [*wrong_commands(text, *known)])
    page = ROOT / "docs/cli.md"
    if len([*wrong_links(page, "[a](nosuch.md) [b](cli.md#nosuch) [c](#common) [d](search.md#queries)")]) != 2:
        yield "does not find wrong links"


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    targets = {*re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M)}
    known = (*reference(), targets)
    assert len(known[0]) > 20 and len(pages(PAGES)) > 20 and len(pages(DOCUMENTS)) > 50
    wrong = [*faults_of_this_test(known), *missed_words(), *wrong_features(), *not_in_the_index()]
    for page in pages(PAGES):
        name = page.relative_to(ROOT)
        wrong += [f"{name}:{number}: {what}" for number, what in wrong_commands(page.read_text(), *known)]
    for page in pages(DOCUMENTS):
        wrong += [f"{page.relative_to(ROOT)}: {what}" for what in wrong_links(page, page.read_text())]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(pages(DOCUMENTS))} documents, {len(wrong)} faults")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
