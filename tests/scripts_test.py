#!/usr/bin/env python3
"""tests/scripts_test.py

Runs every script of tools, experiments, tests and release with --help, which must say what it does and do nothing, and looks for experiments that
experiments/README.md does not name, for Python files that are neither a script nor imported by one, and for files that git ignores and tracks all the
same. Exits with 1 when there are any, when tools/run_tests.py counts wrong or names no test that hangs, when the installer installs what it should
refuse, when a registry of the rehearsal answers wrong, or when a workflow or the metadata of a package names files that there are not. Needs nothing but
Python and, where they are looked at, git and a POSIX shell."""
import argparse, base64, hashlib, io, json, os, pathlib, re, shutil, signal, struct, subprocess, sys, tarfile, tempfile, urllib.error, urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "release"))
sys.dont_write_bytecode = True
import archives, dist, project, publish, registries  # noqa: E402


def scripts():
    """the programs among the files of tools, experiments, tests and release"""
    for path in sorted(path for folder in ("tools", "experiments", "tests", "tests/compat", "tests/remote", "release") for path in ROOT.glob(f"{folder}/*")):
        if path.is_file() and path.read_bytes().startswith(b"#!") and b"python" in path.read_bytes().split(b"\n")[0]:
            yield path


def used_by_nothing():
    programs = {*scripts()}
    for path in sorted({*ROOT.glob("tools/*.py"), *ROOT.glob("experiments/*.py"), *ROOT.glob("release/*.py")} - programs):
        imports = re.compile(rf"^(?:from {path.stem}\b|import (?:\w+, )*{path.stem}\b)", re.M)
        if not any(imports.search(program.read_text()) for program in path.parent.glob("*.py")):
            yield f"{path.relative_to(ROOT)}: no script, as it has no first line with #!, and no script imports it"


def unexplained():
    named = re.findall(r"^\| `(\w+\.py)` \|", (ROOT / "experiments/README.md").read_text(), re.M)
    there = [path.name for path in sorted(ROOT.glob("experiments/*.py"))]
    for name in sorted({*there} ^ {*named}):
        yield f"experiments/README.md: its table and the folder differ in {name}"


def without_help():
    shell_scripts = [ROOT / "release/install.sh", ROOT / "bindings/build.sh"] if shutil.which("sh") else []
    for path in [*scripts(), *shell_scripts]:
        interpreter = ["sh"] if path.suffix == ".sh" else [sys.executable, "-B"]
        asked = subprocess.run([*interpreter, path, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if asked.returncode != 0 or path.name not in asked.stdout:
            yield f"{path.relative_to(ROOT)}: --help prints no help: {(asked.stderr or asked.stdout).strip()[-100:]}"


TESTED = """
running 3 tests
test a ... ok

successes:

---- a stdout ----
skipped: no shared data
skipped: no shared data

---- b stdout ----
skipped: no shared data

successes:
    a
    b

failures:

---- c stdout ----
skipped: no python3

test result: FAILED
"""


def miscounted():
    """what tools/run_tests.py makes of the output of tests: those that passed and those that failed"""
    with tempfile.TemporaryDirectory() as folder:
        script = [sys.executable, "-B", ROOT / "tools/run_tests.py"]
        environment = {**os.environ, "CARGO_TARGET_DIR": folder}
        run = [sys.executable, "-c", f"import sys; print({TESTED!r}, end=''); sys.exit(101)"]
        ran = subprocess.run([*script, *run], env=environment, capture_output=True, text=True)
        counts = subprocess.run(script, env=environment, capture_output=True, text=True).stdout
    if ran.returncode != 101 or "shared data" in ran.stdout or "no python3" not in ran.stdout or counts != "skipped in 2 tests: no shared data\n":
        yield f"tools/run_tests.py: exit code {ran.returncode}, {ran.stdout!r}, {counts!r}"


HANGS = """
import signal
print("running 2 tests")
print("test quick::one has been running for over 60 seconds")
print("test slow::two has been running for over 60 seconds")
print("test quick::one ... ok", flush=True)
signal.pause()
"""


def hanging_tests_that_are_not_named():
    """whether tools/run_tests.py stops a test that never ends, and names it and no other"""
    if not hasattr(signal, "pause"):
        return print("skipped: no signals")
    with tempfile.TemporaryDirectory() as folder:
        script = [sys.executable, "-B", ROOT / "tools/run_tests.py", "--limit", "61"]
        environment = {**os.environ, "CARGO_TARGET_DIR": folder}
        ran = subprocess.run([*script, sys.executable, "-c", HANGS], env=environment, capture_output=True, text=True)
    if ran.returncode != 1 or not ran.stdout.endswith("did not end in time:\n    slow::two\n"):
        yield f"tools/run_tests.py: exit code {ran.returncode}, {ran.stdout!r}"


def tracked_though_ignored():
    listed = ["git", "-C", str(ROOT), "ls-files", "--cached", "--ignored", "--exclude-standard"]
    try:
        found = subprocess.run(listed, capture_output=True, text=True)
    except FileNotFoundError:
        return print("skipped: no git")
    if found.returncode != 0:
        return print("skipped: not a clone")
    yield from (f"{name}: is ignored and tracked" for name in found.stdout.splitlines())


class Release:
    """a folder with a release of a program that prints its version, and the installer of it"""

    def __init__(self, folder, program='echo "transcript 1.2.3"'):
        self.home = pathlib.Path(folder, "home")
        self.files = pathlib.Path(folder, "served/v1.2.3")
        tools = pathlib.Path(folder, "tools")
        for made in (self.home, self.files, tools):
            made.mkdir(parents=True)
        # The tests run on any processor.
        (tools / "uname").write_text('#!/bin/sh\ncase $1 in -s) echo Linux ;; -m) echo x86_64 ;; esac\n')
        (tools / "getconf").write_text("#!/bin/sh\nexit ${NO_GLIBC:-0}\n")
        for tool in tools.iterdir():
            tool.chmod(0o755)
        self.environment = {"HOME": str(self.home), "PATH": f"{tools}:{os.environ['PATH']}", "no_proxy": "127.0.0.1"}
        self.archive = self.add("x86_64-unknown-linux-musl", program)
        (self.files / "install.sh").write_text((ROOT / "release/install.sh").read_text().replace("@VERSION@", "1.2.3").replace("@BASE_URL@", ""))

    def add(self, target, program):
        packed = {name: (name.encode(), 0o644) for name in ("man/transcript.1", "man/transcript-list.1")}
        packed |= {f"completions/{name}": (name.encode(), 0o644) for name in ("transcript.bash", "_transcript", "transcript.fish")}
        packed["transcript"] = f"#!/bin/sh\n{program}\n".encode(), 0o755
        archive = self.files / dist.archive_name("1.2.3", target)
        archive.write_bytes(archives.tarball({f"{dist.folder_of('1.2.3', target)}/{name}": file for name, file in packed.items()}))
        with (self.files / "SHA256SUMS").open("a") as sums:
            sums.write(f"{project.sha256(archive)}  {archive.name}\n")
        return archive

    def install(self, *arguments, **environment):
        command = ["sh", self.files / "install.sh", *arguments]
        return subprocess.run(command, env={**self.environment, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def installed(self):
        return sorted(path.relative_to(self.home).as_posix() for path in self.home.rglob("*") if path.is_file())


INSTALLED = [
    ".local/bin/transcript",
    ".local/share/bash-completion/completions/transcript",
    ".local/share/fish/vendor_completions.d/transcript.fish",
    ".local/share/man/man1/transcript-list.1",
    ".local/share/man/man1/transcript.1",
    ".local/share/zsh/site-functions/_transcript",
]


def installed_wrong():
    """what the installer leaves of a whole release, by HTTP and from a folder, and of releases that it must refuse"""
    if not shutil.which("sh") or not hasattr(os, "geteuid"):
        return print("skipped: no POSIX shell")
    with tempfile.TemporaryDirectory() as folder:
        release = Release(folder)
        if shutil.which("curl") or shutil.which("wget"):
            with project.Served(project.files_of(release.files.parent)) as served:
                ran = release.install(TRANSCRIPT_BASE_URL=served.url)
        else:
            print("skipped: neither curl nor wget")
            ran = release.install("--from", release.files)
        if ran.returncode != 0 or release.installed() != INSTALLED or "is not in PATH" not in ran.stdout or "transcript 1.2.3" not in ran.stdout:
            yield f"install.sh: exit code {ran.returncode}, {release.installed()}, {ran.stdout!r}, {ran.stderr!r}"
        ran = release.install("--prefix", release.home / "other", "--from", release.files, PATH=f"{release.home}/other/bin:{release.environment['PATH']}")
        if ran.returncode != 0 or "other/bin/transcript" not in release.installed() or "is not in PATH" in ran.stdout:
            yield f"install.sh --prefix: exit code {ran.returncode}, {ran.stdout!r}, {ran.stderr!r}"

    starts, does_not = "echo transcript 1.2.3 gnu", "exit 127"
    for glibc, program, expected in (("0", starts, " gnu"), ("0", does_not, ""), ("1", starts, "")):
        with tempfile.TemporaryDirectory() as folder:
            release = Release(folder)
            release.add("x86_64-unknown-linux-gnu", program)
            ran = release.install("--from", release.files, NO_GLIBC=glibc)
            if ran.returncode != 0 or f"installed: transcript 1.2.3{expected} as" not in ran.stdout:
                yield f"install.sh, a program for glibc that does {program!r}, no glibc {glibc}: exit code {ran.returncode}, {ran.stdout!r}, {ran.stderr!r}"

    def other_byte(release):
        content = bytearray(release.archive.read_bytes())
        content[-1] ^= 1
        release.archive.write_bytes(content)

    def other_sum(release):
        (release.files / "SHA256SUMS").write_text(f"{'0' * 64}  {release.archive.name}\n")

    refused = {
        "a byte of the archive is another one": (other_byte, "checksum"),
        "the archive is cut": (lambda release: release.archive.write_bytes(release.archive.read_bytes()[:-100]), "checksum"),
        "SHA256SUMS has another checksum": (other_sum, "checksum"),
        "SHA256SUMS does not name the archive": (lambda release: (release.files / "SHA256SUMS").write_text(""), "no archive for"),
        "there is no archive": (lambda release: release.archive.unlink(), "cannot read"),
    }
    for what, (change, reason) in refused.items():
        with tempfile.TemporaryDirectory() as folder:
            release = Release(folder)
            change(release)
            ran = release.install("--from", release.files)
            if ran.returncode == 0 or release.installed() or reason not in ran.stderr:
                yield f"install.sh where {what}: exit code {ran.returncode}, {release.installed()}, {ran.stderr!r}"
    with tempfile.TemporaryDirectory() as folder:
        release = Release(folder, program="exit 1")
        for arguments, reason in ((["--from", release.files], "does not start"), ([], "no address"), (["--nope"], "unknown option"), (["--from"], "needs a value")):
            ran = release.install(*arguments)
            if ran.returncode == 0 or release.installed() or reason not in ran.stderr:
                yield f"install.sh {arguments}: exit code {ran.returncode}, {release.installed()}, {ran.stderr!r}"


def asked(url, method="GET", body=None, kind="application/octet-stream"):
    """(status, body) of an answer"""
    request = urllib.request.Request(url, body, {"Content-Type": kind}, method=method)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def crate_to_publish(name, archive, *needs):
    needed = {"version_req": "^1", "features": [], "optional": False, "default_features": True, "target": None, "kind": "normal"}
    sent = json.dumps({"name": name, "vers": "1.0.0", "deps": [{**needed, "name": need} for need in needs], "features": {}}).encode()
    return struct.pack("<I", len(sent)) + sent + struct.pack("<I", len(archive)) + archive


def python_to_publish(content, checksum):
    parts = [("name", "a_package"), ("version", "1.0"), ("sha256_digest", checksum)]
    body = "".join(f'--edge\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in parts).encode()
    head = '--edge\r\nContent-Disposition: form-data; name="content"; filename="a_package-1.0.tar.gz"\r\n\r\n'
    return body + head.encode() + content + b"\r\n--edge--\r\n"


def npm_to_publish(content, checksum):
    integrity = "sha512-" + base64.b64encode(checksum).decode()
    attachments = {"a-1.0.0.tgz": {"data": base64.b64encode(content).decode()}}
    versions = {"1.0.0": {"name": "a", "version": "1.0.0", "dist": {"integrity": integrity}}}
    return json.dumps({"versions": versions, "dist-tags": {"latest": "1.0.0"}, "_attachments": attachments}).encode()


def registries_that_answer_wrong():
    """each registry hands out what was published, once, and refuses what is damaged, needs what is missing, or is there already"""
    archive = b"\x00an \xff archive\r\n\r\n--edg\r"
    with registries.Registries() as served:
        crates, python, npm = f"{served.url}/crates", f"{served.url}/python", f"{served.url}/npm"
        new = f"{crates}/api/v1/crates/new"
        form = "multipart/form-data; boundary=edge"
        sha256, sha512 = hashlib.sha256(archive).hexdigest(), hashlib.sha512(archive).digest()
        checks = {
            "a crate that needs one that is missing": b"errors" in asked(new, "PUT", crate_to_publish("a-user", archive, "a-crate"))[1],
            "a crate that is cut": b"errors" in asked(new, "PUT", crate_to_publish("a-crate", archive)[:-1])[1],
            "no crate yet": asked(f"{crates}/index/a-/cr/a-crate")[0] == 404,
            "a crate": b"warnings" in asked(new, "PUT", crate_to_publish("a-crate", archive))[1],
            "a crate that needs it": b"warnings" in asked(new, "PUT", crate_to_publish("a-user", archive, "a-crate"))[1],
            "the same again": b"errors" in asked(new, "PUT", crate_to_publish("a-crate", archive))[1],
            "short names": [registries.index_path(name) for name in ("a", "ab", "abc", "Abcd")] == ["1/a", "2/ab", "3/a/abc", "ab/cd/abcd"],
            "a wrong checksum for Python": asked(f"{python}/upload/", "POST", python_to_publish(archive, "0" * 64), form)[0] == 400,
            "no package for Python yet": asked(f"{python}/simple/a-package/")[0] == 404,
            "a package for Python": asked(f"{python}/upload/", "POST", python_to_publish(archive, sha256), form)[0] == 200,
            "the same again for Python": asked(f"{python}/upload/", "POST", python_to_publish(archive, sha256), form)[0] == 400,
            "a file for Python": asked(f"{python}/files/a_package-1.0.tar.gz") == (200, archive),
            "a link to it": sha256.encode() in asked(f"{python}/simple/A.package/")[1],
            "a wrong checksum for npm": asked(f"{npm}/a", "PUT", npm_to_publish(archive, b"0"))[0] == 400,
            "a package for npm": asked(f"{npm}/a", "PUT", npm_to_publish(archive, sha512))[0] == 201,
            "the same again for npm": asked(f"{npm}/a", "PUT", npm_to_publish(archive, sha512))[0] == 403,
        }
        line = json.loads(asked(f"{crates}/index/a-/us/a-user")[1])
        configuration = json.loads(asked(f"{crates}/index/config.json")[1])
        checks["the index"] = (line["cksum"], [need["name"] for need in line["deps"]]) == (sha256, ["a-crate"])
        download = configuration["dl"].replace("{crate}", "a-crate").replace("{version}", "1.0.0")
        checks["the archive"] = asked(download) == (200, archive)
        version = json.loads(asked(f"{npm}/a")[1])["versions"]["1.0.0"]
        checks["the tarball"] = asked(version["dist"]["tarball"]) == (200, archive)
        checks["what was published"] = [len(one.published) for one in (served.crates, served.python, served.npm)] == [2, 1, 1]
    yield from (f"release/registries.py: {what}" for what, held in checks.items() if not held)


def named_and_not_there():
    """scripts that workflows run, archives that cargo binstall asks for, and files of the Debian package that the repository has not"""
    for workflow in sorted(ROOT.glob(".github/workflows/*.yml")):
        for script in re.findall(r"(?:^|[\s:])((?:\.ci|release|bindings|tools|tests)/[\w./-]+)", "\n".join(re.findall(r"- run: (.*)", workflow.read_text()))):
            if not os.access(ROOT / script, os.X_OK):
                yield f"{workflow.name} runs {script}, which is not a program"
    manifest = (ROOT / "crates/transcript-cli/Cargo.toml").read_text()
    addresses = re.findall(r'^pkg-url = "(.*)"$', manifest, re.M)
    targets = (*dist.TARGETS, "x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc", "aarch64-apple-darwin")
    for target in targets:
        part = manifest.partition(f"[package.metadata.binstall.overrides.{target}]")[2] or manifest
        address = re.search(r'^pkg-url = "(.*)"$', part, re.M)[1].replace("{ version }", "1.2.3").replace("{ target }", target)
        if not address.endswith(f"/v1.2.3/{dist.archive_name('1.2.3', target)}"):
            yield f"cargo binstall asks for {address}, and dist.py makes {dist.archive_name('1.2.3', target)}"
    folder = re.search(r'^bin-dir = "(.*?)/', manifest, re.M)[1].replace("{ version }", "1.2.3").replace("{ target }", dist.TARGETS[0])
    if len(addresses) < 3 or folder != dist.folder_of("1.2.3", dist.TARGETS[0]):
        yield f"cargo binstall looks into {folder}"
    sources = re.findall(r'^    \["(.*?)", "usr/', manifest, re.M)
    made = ("target/", "../../target/")
    for source in sources:
        if not source.startswith(made) and not (ROOT / "crates/transcript-cli" / source).exists():
            yield f"the Debian package wants {source}"
    if not sources:
        yield "the Debian package has no files"


def packages_that_differ():
    """the same files make the same bytes, and a Debian package has what was put into it"""
    files = {"usr/bin/b": (b"program", 0o755), "usr/share/man/man1/a.1": (b"page", 0o644)}
    control = {"Package": "a", "Version": "1", "Architecture": "all", "Depends": "", "Maintainer": "m"}
    made = [archives.deb(files, control, ["short", "long"]) for _ in range(2)]
    if made[0] != made[1]:
        yield "release/archives.py: two Debian packages of the same files differ"
    members, rest = {}, made[0].removeprefix(b"!<arch>\n")
    while rest:
        name, length = rest[:16].decode().strip(), int(rest[48:58])
        members[name] = rest[60 : 60 + length]
        rest = rest[60 + length + length % 2 :]
    with tarfile.open(fileobj=io.BytesIO(members["data.tar.gz"])) as tar:
        modes = {entry.name: entry.mode for entry in tar if entry.isfile()}
    if [*members] != ["debian-binary", "control.tar.gz", "data.tar.gz"] or modes != {"./usr/bin/b": 0o755, "./usr/share/man/man1/a.1.gz": 0o644}:
        yield f"release/archives.py: a Debian package has {[*members]} and {modes}"
    with tarfile.open(fileobj=io.BytesIO(members["control.tar.gz"])) as tar:
        text = tar.extractfile("./control").read().decode()
    if "Depends" in text or "Description: short\n long\n" not in text:
        yield f"release/archives.py: the control file of a Debian package is {text!r}"
    if archives.glibc(b"GLIBC_2.4 GLIBC_2.34 GLIBC_2.9") != (2, 34) or archives.glibc(b"") is not None:
        yield "release/archives.py: another version of glibc"
    names = ["transcript-engine-0.1.0.tgz", "transcript-engine-linux-x64-gnu-0.1.0.tgz", "transcript-engine-darwin-x64-0.1.0.tgz"]
    if publish.sorted_for_npm(map(pathlib.Path, names))[-1].name != names[0]:
        yield "release/publish.py: the main package of npm is not the last"


def main():
    argparse.ArgumentParser(description=__doc__.split("\n\n")[1]).parse_args()
    assert sum(1 for _ in scripts()) > 20
    of_scripts = [*without_help(), *used_by_nothing(), *unexplained(), *miscounted(), *hanging_tests_that_are_not_named(), *tracked_though_ignored()]
    of_release = [*installed_wrong(), *registries_that_answer_wrong(), *named_and_not_there(), *packages_that_differ()]
    wrong = of_scripts + of_release
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{sum(1 for _ in scripts())} scripts, {len(wrong)} faults")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
