#!/usr/bin/env python3
"""tools/package.py [--verify]

Makes the archive of every crate that is published, as crates.io gets it, and looks into it: it has both licences and a README whose links work
outside of the repository, and no file of it includes another that is not there. Exits with 1 when something is missing. Nothing is uploaded, and
nothing is compiled without --verify, which builds each crate from its archive. Needs cargo 1.90 or later."""
import argparse, json, os, pathlib, posixpath, re, subprocess, sys, tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO", "cargo")
LICENCES = ("LICENSE-APACHE", "LICENSE-MIT")
INCLUDED = re.compile(r'include_(?:str|bytes)!\(\s*"([^"]+)"')
LINK = re.compile(r"\]\(([^)]+)\)")


def cargo(*arguments):
    return subprocess.run([CARGO, *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def shipped(text):
    """a source file without the parts that only tests compile: items of one line, and the tests at the end"""
    text = re.sub(r"#\[cfg\((?:doc)?test\)\]\n(?:#.*\n)*.*;\n", "", text)
    return text.split("\n#[cfg(test)]")[0]


def faults(package, archive):
    for key in ("description", "license", "keywords", "categories", "readme"):
        if not package[key]:
            yield f"its manifest has no {key}"
    with tarfile.open(archive) as tar:
        files = {member.name.split("/", 1)[1]: tar.extractfile(member).read() for member in tar if member.isfile()}
    for name in LICENCES:
        if files.get(name) != (ROOT / name).read_bytes():
            yield f"it has no copy of {name}"
    for target in LINK.findall(files.get("README.md", b"").decode()):
        if not target.startswith(("https://", "#")):
            yield f"README.md links to {target}, which is not in the archive"
    for name, content in files.items():
        if not name.endswith(".rs"):
            continue
        text = content.decode()
        for target in INCLUDED.findall(shipped(text)):
            if posixpath.normpath(posixpath.join(posixpath.dirname(name), target)) not in files:
                yield f"{name} includes {target}, which is not in the archive"
        if name.startswith("examples/") and "transcript_testkit" in text:
            yield f"{name} needs the testkit, which is not published"


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--verify", action="store_true", help="also build each crate from its archive")
    o = a.parse_args()
    version = tuple(map(int, re.search(r"(\d+)\.(\d+)", cargo("--version")).groups()))
    if version < (1, 90):
        return print("skipped: cargo before 1.90 cannot package crates that depend on each other")
    metadata = json.loads(cargo("metadata", "--no-deps", "--format-version", "1"))
    published = [package for package in metadata["packages"] if package["publish"] != []]
    names = [argument for package in published for argument in ("-p", package["name"])]
    # Changes that are not committed are packaged as well; the crates were fetched when they were built.
    cargo("package", "--quiet", "--offline", "--locked", "--allow-dirty", *([] if o.verify else ["--no-verify"]), *names)
    wrong = 0
    for package in published:
        archive = pathlib.Path(metadata["target_directory"], "package", f"{package['name']}-{package['version']}.crate")
        for fault in faults(package, archive):
            print(f"{package['name']}: {fault}")
            wrong += 1
    print(f"{len(published)} crates packaged, {wrong} faults")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
