#!/usr/bin/env python3
"""release/rehearse.py [--sdist] [--keep DIR]

Publishes all crates, the wheel with the sdist, and the npm packages to registries on loopback, with the commands of release/publish.py. Then it installs
the command and builds three small clients (release/clients) from these registries alone, and lets each of them continue the same session. Nothing leaves
this machine. Run `make bindings` before: the wheel and the npm packages are those that it made. The crates of others come from the folders in which cargo
keeps them. Compiled files stay in target/rehearsal. A step without its tool says `skipped` and why; exits with 1 when a step fails."""
import argparse, io, json, os, pathlib, re, shutil, sys, tarfile, tempfile, venv, zipfile

import first_screen, publish
from project import CARGO, FIRST_SCREENS, LICENCES, MAX_DOWNLOAD_SECONDS, ROOT, TARGET, Failed, Skipped, Timer, metadata, published_crates, run, size, tool
from registries import Registries

CLIENTS = ROOT / "release/clients"
CARGO_CONFIG = """
[source.crates-io]
replace-with = "rehearsal"

[source.rehearsal]
registry = "sparse+{url}/index/"

[registries.rehearsal]
index = "sparse+{url}/index/"
token = "of a rehearsal"
"""


def skipped(what, why):
    print(f"skipped: {what}, as {why}", flush=True)


def file_names(content):
    """the names in an archive: a zip, or a compressed tar as crates, sdists and npm have it"""
    if zipfile.is_zipfile(io.BytesIO(content)):
        return zipfile.ZipFile(io.BytesIO(content)).namelist()
    return tarfile.open(fileobj=io.BytesIO(content)).getnames()


class Rehearsal:
    def __init__(self, work, registries):
        self.work = work
        self.registries = registries
        self.bundlers = pathlib.Path(os.environ.get("TRANSCRIPT_BUNDLERS", TARGET / "bundlers"))
        self.maturin = TARGET / "bindings-venv/bin"
        home = work / "cargo-home"
        home.mkdir()
        (home / "config.toml").write_text(CARGO_CONFIG.format(url=registries.crates.url))
        npmrc = work / "npmrc"
        npmrc.write_text(publish.npm_configuration(f"{registries.npm.url}/"))
        self.environment = {
            **os.environ,
            "CARGO_HOME": str(home),
            "CARGO_TARGET_DIR": str(TARGET / "rehearsal"),
            "CARGO_INCREMENTAL": "0",
            "CARGO_PROFILE_DEV_DEBUG": "0",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
            "npm_config_userconfig": str(npmrc),
            "npm_config_cache": str(work / "npm-cache"),
            "npm_config_update_notifier": "false",
            "NODE_AUTH_TOKEN": "rehearsal",
            "TWINE_USERNAME": "__token__",
            "TWINE_PASSWORD": "rehearsal",
        }
        self.session = work / "1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl"
        self.messages = 0

    def run(self, command, **options):
        return run(command, **{"env": self.environment, "cwd": self.work, **options})

    def report(self, what, timer, published, contents):
        """prints what a registry has got, and fails for a package without licences"""
        print(f"{what}: {len(published)} published in {timer}")
        for (name, version, length), content in zip(published, contents, strict=True):
            print(f"  {name} {version}  {size(length)}", flush=True)
            names = {file.rsplit("/", 1)[-1] for file in file_names(content)}
            if missing := [licence for licence in LICENCES if licence not in names]:
                raise Failed(f"{name} has no {', '.join(missing)}")

    def publish_crates(self):
        timer, crates = Timer(), self.registries.crates
        run([CARGO, "fetch", "--locked"], cwd=ROOT)
        about = metadata()
        home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
        crates.add_others(about["packages"], (ROOT / "Cargo.lock").read_text(), [*home.glob("registry/cache/*")])
        # They are compiled when the command and the client are built from the registry.
        for command in publish.crates_commands("--registry", "rehearsal", "--no-verify", "--allow-dirty"):
            self.run(command, cwd=ROOT)
        self.report("crates", timer, crates.published, [crates.archives[name, version] for name, version, _ in crates.published])
        if {name for name, *_ in crates.published} != {package["name"] for package in published_crates(about)}:
            raise Failed("not every crate was published")

    def publish_python(self):
        timer, packages = Timer(), self.registries.python
        files = publish.python_files()
        if not files:
            return skipped("the wheel", "there is none in bindings/python/dist")
        try:
            python = tool("twine", "twine").parent / "python"
            for command in publish.python_commands(files, "--repository-url", f"{packages.url}/upload/"):
                self.run([python, *command[1:]])
        except Skipped as reason:
            skipped("the upload with twine", f"{reason}; the files are put into the index")
            for file in files:
                packages.files[file.name] = "transcript-engine", file.read_bytes()
                packages.published.append((file.name, "", file.stat().st_size))
        self.report("Python", timer, packages.published, [packages.files[name][1] for name, *_ in packages.published])

    def publish_npm(self):
        timer, packages = Timer(), self.registries.npm
        files = publish.npm_files()
        if not shutil.which("npm") or not files:
            return skipped("npm packages", "there is no npm" if files else "there are none in bindings/node/dist")
        for command in publish.npm_commands(files):
            self.run(command)
        names = [f"{name}/-/{name}-{version}.tgz" for name, version, _ in packages.published]
        self.report("npm", timer, packages.published, [packages.tarballs[name] for name in names])

    def continue_session(self, what, command, timer):
        """lets a client append to the session, which must find all messages that the others wrote"""
        printed = self.run([*command, self.session], cwd=self.session.parent).strip()
        print(f"{what}: {printed} ({timer})", flush=True)
        if printed != f"resumed with {self.messages} messages, closed with {self.messages + 2}":
            raise Failed(f"{what}: the session has {self.messages} messages")
        self.messages += 2

    def client_rust(self):
        timer = Timer()
        shutil.copytree(CLIENTS / "rust", self.work / "rust")
        self.run([CARGO, "build", "--quiet"], cwd=self.work / "rust")
        self.continue_session("client in Rust", [f"{self.environment['CARGO_TARGET_DIR']}/debug/rehearsal-client"], timer)

    def client_python(self):
        if not self.registries.python.published:
            return
        timer, folder = Timer(), self.work / "python"
        venv.create(folder, with_pip=True)
        index = f"{self.registries.python.url}/simple/"
        # Isolated: neither the environment nor a configuration adds another index.
        self.run([folder / "bin/python", "-m", "pip", "--isolated", "install", "--quiet", "--no-cache-dir", "--index-url", index, "transcript-engine"])
        self.continue_session("client in Python", [folder / "bin/python", CLIENTS / "python/client.py"], timer)
        readme = ROOT / "bindings/python/README.md"
        printed = first_screen.check_examples(folder / "bin/python", readme, "python", folder, FIRST_SCREENS / "wheel.txt")
        print(f"README of the wheel: {printed}", flush=True)

    def build_sdist(self):
        """builds a wheel from the published sdist, with crates from the registry alone"""
        if not any(name.endswith(".tar.gz") for name, *_ in self.registries.python.published):
            return skipped("the sdist", "it is not among the packages")
        timer, out = Timer(), self.work / "from-sdist"
        index = f"{self.registries.python.url}/simple/"
        options = ["--no-deps", "--no-build-isolation", "--no-cache-dir", "--no-binary", ":all:", "-C", "build-args=--profile dev"]
        environment = {**self.environment, "PATH": f"{self.maturin}:{os.environ['PATH']}"}
        pip = [self.maturin / "python", "-m", "pip", "--isolated", "wheel", "--quiet", "--index-url", index]
        self.run([*pip, *options, "--wheel-dir", out, "transcript-engine"], env=environment)
        (wheel,) = out.glob("*.whl")
        folder = self.work / "python-from-sdist"
        venv.create(folder, with_pip=True)
        self.run([folder / "bin/python", "-m", "pip", "--isolated", "install", "--quiet", "--no-index", wheel])
        self.continue_session("client in Python, from the sdist", [folder / "bin/python", CLIENTS / "python/client.py"], timer)

    def client_node(self):
        if not self.registries.npm.published:
            return
        timer, folder = Timer(), self.work / "node"
        folder.mkdir()
        (folder / "package.json").write_text(json.dumps({"private": True, "type": "module"}))
        shutil.copy(CLIENTS / "node/client.mjs", folder)
        self.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "transcript-engine"], cwd=folder)
        self.continue_session("client in Node", ["node", folder / "client.mjs"], timer)
        node, readme = pathlib.Path(shutil.which("node")), folder / "node_modules/transcript-engine/README.md"
        printed = first_screen.check_examples(node, readme, "js", folder, FIRST_SCREENS / "npm.txt")
        print(f"README of the npm package: {printed}", flush=True)
        if not (self.bundlers / "node_modules").is_dir():
            try:
                self.bundlers.mkdir(parents=True, exist_ok=True)
                # The same as bindings/test.sh, which keeps them there.
                tools = ["esbuild", "bun", "deno", "postject"]
                npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-save", "--fetch-retries", "1"]
                run([*npm, *tools], cwd=self.bundlers, timeout=MAX_DOWNLOAD_SECONDS)
            except Failed:
                return skipped("bundles of the client", "npm cannot install esbuild, bun and deno")
        (addon,) = folder.glob("node_modules/transcript-engine-*/*.node")
        esbuild = ["--bundle", "--platform=node", "--format=esm", "--loader:.node=file", "--log-level=error"]
        self.bundle("esbuild", lambda out: [*esbuild, f"--outfile={out / 'client.mjs'}"], ["node", "client.mjs"])
        self.bundle("bun", lambda out: ["build", "--compile", "--outfile", out / "client"], ["./client"])
        include = addon.relative_to(folder)
        self.bundle("deno", lambda out: ["compile", "--quiet", "--allow-all", "--no-check", "--include", include, "--output", out / "client"], ["./client"])

    def bundle(self, bundler, options, command):
        """makes one file of the client, and runs it where nothing is installed"""
        timer, program = Timer(), self.bundlers / "node_modules/.bin" / bundler
        out = self.work / f"bundle-{bundler}"
        out.mkdir()
        if not program.exists():
            return skipped(f"the client by {bundler}", f"there is no {bundler}")
        try:
            self.run([program, *options(out), "client.mjs"], cwd=self.work / "node", timeout=MAX_DOWNLOAD_SECONDS)
        except Failed as failed:
            # It gets the start of its executables from there, and npm has no package of it.
            if bundler != "deno" or not re.search("dl.deno.land|does not end", failed.args[0]):
                raise
            return skipped("the client by deno", "the start of its executables cannot be downloaded")
        program, *arguments = command
        program = program if program == "node" else out / program
        self.continue_session(f"client by {bundler}", [program, *(out / argument for argument in arguments)], timer)

    def install_command(self):
        timer, root = Timer(), self.work / "installed"
        self.run([CARGO, "install", "--quiet", "--debug", "--locked", "--root", root, "transcript-cli"])
        command = root / "bin/transcript"
        print(f"command: {self.run([command, '--version']).strip()}, by cargo install ({timer})", flush=True)
        homes = self.work / "homes"
        printed = first_screen.check([command], homes, first_screen.write_homes(homes), shown=FIRST_SCREENS / "cargo-install-registry.txt")
        print(f"README of the command: {printed}", flush=True)
        return command

    def look(self, command):
        """the installed command must find the session whole, with all messages of all clients"""
        self.run([command, "verify", self.session])
        replayed = self.run([command, "replay", "--quiet", self.session])
        if replayed.count("most fourth ones") * 2 != self.messages:
            raise Failed(f"replay shows not all of {self.messages} messages:\n{replayed}")
        print(f"session: {self.messages} messages, verify finds nothing", flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--sdist", action="store_true", help="also build the Python package from its sdist")
    a.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="work in this new folder, and keep it")
    o = a.parse_args()
    timer = Timer()
    with tempfile.TemporaryDirectory(prefix="transcript-rehearsal-") as temporary, Registries() as registries:
        work = pathlib.Path(temporary)
        if o.keep:
            o.keep.mkdir(parents=True)
            work = o.keep.absolute()
        try:
            rehearsal = Rehearsal(work, registries)
            rehearsal.publish_crates()
            rehearsal.publish_python()
            rehearsal.publish_npm()
            command = rehearsal.install_command()
            rehearsal.client_rust()
            rehearsal.client_python()
            if o.sdist:
                rehearsal.build_sdist()
            rehearsal.client_node()
            rehearsal.look(command)
        except Failed as failed:
            print(failed)
            return 1
    print(f"rehearsed in {timer}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
