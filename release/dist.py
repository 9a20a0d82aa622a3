#!/usr/bin/env python3
"""release/dist.py [--target TARGET …] [--profile dist] [--no-build] [--no-test] | --collect

Builds the command for this machine and for the targets that can be built here, and writes into target/dist what a release consists of: for each target
an archive with the program, its completions, its manual and the licences, Debian packages, a Homebrew formula, the installer, and SHA256SUMS. Then it
runs what it packed in an empty root folder, without Rust and without a C library where there need be none, and the installer over loopback. What cannot
be built or run here is `skipped`, with the reason. Exits with 1 when something that can be tried fails.

Programs for musl are static. Their C compiler is musl-gcc (Debian: musl-tools), for other processors zig, which comes from PyPI once (ziglang and
cargo-zigbuild, into target/release-tools). The address of the release is BASE_URL of release/config, or the environment variable TRANSCRIPT_BASE_URL."""
import argparse, functools, glob, os, pathlib, re, shutil, sys, tempfile

import archives, first_screen
from empty_root import SHELLS, EmptyRoot
from project import CARGO, FIRST_SCREENS, LICENCES, ROOT, TARGET, TOOLS, Failed, Served, Skipped, Timer, base_url, files_of, metadata, run, sha256, size, tool

OUT = TARGET / "dist"
SHARE = TARGET / "share"
CRATE = ROOT / "crates/transcript-cli"
TARGETS = ("x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "x86_64-pc-windows-gnu")
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}


@functools.cache
def host():
    return re.search(r"^host: (.+)$", run(["rustc", "-vV"]), re.M)[1]


@functools.cache
def zig_environment():
    """an environment in which cargo has the command `zigbuild`"""
    environment = {**os.environ, "PATH": f"{TOOLS / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    if shutil.which("cargo-zigbuild", path=environment["PATH"]) is None:
        tool("cargo-zigbuild", "ziglang", "cargo-zigbuild")
    return environment


def compiler(target):
    """(the subcommand of cargo that builds for a target, its environment)"""
    if target == host():
        return "build", os.environ
    libraries = pathlib.Path(run(["rustc", "--print", "sysroot"]).strip(), "lib/rustlib", target)
    if not libraries.exists():
        raise Skipped(f"there is no Rust for it (rustup target add {target})")
    if "-linux-musl" in target:
        if target.split("-")[0] == host().split("-")[0] and shutil.which("musl-gcc"):
            return "build", os.environ
        return "zigbuild", zig_environment()
    if target == "x86_64-pc-windows-gnu":
        if shutil.which("x86_64-w64-mingw32-gcc"):
            return "build", os.environ
        raise Skipped("there is no x86_64-w64-mingw32-gcc (Debian: gcc-mingw-w64-x86-64)")
    raise Skipped(f"this machine has no C compiler for it that is known; build it on {target} itself")


def program_of(target, profile):
    return TARGET / target / profile / ("transcript.exe" if "windows" in target else "transcript")


def build(target, profile):
    subcommand, environment = compiler(target)
    run([CARGO, subcommand, "--quiet", "--locked", "--profile", profile, "--target", target, "-p", "transcript-cli"], cwd=ROOT, env=environment)


def emulator_of(target):
    """None for a program that this machine runs itself; else the path of what runs it"""
    processor = target.split("-")[0]
    if processor == host().split("-")[0]:
        return None
    found = shutil.which(f"qemu-{processor}-static")
    if found is None:
        raise Skipped(f"there is no qemu-{processor}-static (Debian: qemu-user-static)")
    return found


def runs_here(target):
    system = target.split("-")[2]
    if system != host().split("-")[2]:
        return False
    try:
        emulator_of(target)
    except Skipped:
        return False
    return True


def write_documents(program, target):
    """writes completions and manual pages into target/share, where the metadata for cargo-deb expects them"""
    emulator = emulator_of(target)
    before = [emulator, program] if emulator else [program]
    for folder in ("man", "completions"):
        shutil.rmtree(SHARE / folder, ignore_errors=True)
    run([*before, "man", "--dir", SHARE / "man"])
    (SHARE / "completions").mkdir(parents=True)
    for shell, name in SHELLS.items():
        (SHARE / "completions" / name).write_bytes(run([*before, "completions", shell]).encode())


def documents():
    """what every archive has besides the program"""
    files = {path.relative_to(SHARE).as_posix(): (path.read_bytes(), 0o644) for path in sorted(SHARE.glob("*/*"))}
    files["README.md"] = (CRATE / "README.md").read_bytes(), 0o644
    return files | {name: ((ROOT / name).read_bytes(), 0o644) for name in LICENCES}


def folder_of(version, target):
    """the folder in an archive, for which the archive is named"""
    return f"transcript-{version}-{target}"


def archive_name(version, target):
    return folder_of(version, target) + (".zip" if "windows" in target else ".tar.gz")


def write_archive(version, target, program):
    files = {**documents(), program.name: (program.read_bytes(), 0o755)}
    files = {f"{folder_of(version, target)}/{file}": content for file, content in files.items()}
    path = OUT / archive_name(version, target)
    path.write_bytes(archives.zip_file(files) if path.suffix == ".zip" else archives.tarball(files))
    return path


def deb_files(about, program):
    """the files of the Debian package, as the metadata for cargo-deb lists them"""
    files = {}
    for source, destination, mode in about["assets"]:
        found = [program] if source.startswith("target/release/") else sorted(map(pathlib.Path, glob.glob(str(CRATE / source))))
        if source.startswith("../../target/"):
            found = sorted(map(pathlib.Path, glob.glob(str(TARGET / source.removeprefix("../../target/")))))
        if not found:
            raise Failed(f"the Debian package wants {source}, which is not there")
        for path in found:
            name = destination + path.name if destination.endswith("/") else destination
            files[name] = path.read_bytes(), int(mode, 8)
    return files


def write_deb(package, target, program):
    about = package["metadata"]["deb"]
    needs = archives.glibc(program.read_bytes()) if "gnu" in target else None
    control = {
        "Package": about["name"],
        "Version": package["version"],
        "Architecture": DEBIAN[target.split("-")[0]],
        "Maintainer": about["maintainer"],
        "Depends": f"libc6 (>= {needs[0]}.{needs[1]})" if needs else "",
        "Section": about["section"],
        "Priority": about["priority"],
        "Homepage": package["homepage"],
    }
    files = deb_files(about, program)
    # Debian has a copy of one of the two licences.
    copyright = f"License: {package['license']}\n\n{(ROOT / 'LICENSE-MIT').read_text()}\nApache-2.0: /usr/share/common-licenses/Apache-2.0\n"
    files["usr/share/doc/transcript/copyright"] = copyright.encode(), 0o644
    path = OUT / f"{about['name']}_{package['version']}_{control['Architecture']}.deb"
    path.write_bytes(archives.deb(files, control, [package["description"], about["extended-description"].strip()]))
    return path


def formula(package, built):
    """the Homebrew formula for the archives of Linux and macOS"""
    version = package["version"]
    # Homebrew passes on the variables whose names start like this.
    base = base_url() or '#{ENV.fetch("HOMEBREW_TRANSCRIPT_BASE_URL")}'
    lines = ["class Transcript < Formula", f'  desc "{package["description"]}"']
    if package["homepage"]:
        lines.append(f'  homepage "{package["homepage"]}"')
    lines += [f'  version "{version}"', '  license any_of: ["MIT", "Apache-2.0"]', ""]
    for system, words in (("linux", ("unknown-linux-musl", "unknown-linux-gnu")), ("macos", ("apple-darwin",))):
        blocks = []
        for block, processor in (("intel", "x86_64"), ("arm", "aarch64")):
            target = next((f"{processor}-{word}" for word in words if f"{processor}-{word}" in built), None)
            if target:
                url, checksum = f"{base}/v{version}/{built[target].name}", sha256(built[target])
                blocks += [f"    on_{block} do", f'      url "{url}"', f'      sha256 "{checksum}"', "    end"]
        if blocks:
            lines += [f"  on_{system} do", *blocks, "  end", ""]
    return "\n".join(lines) + "\n" + (ROOT / "release/formula_end.rb").read_text()


def installer(version):
    text = (ROOT / "release/install.sh").read_text()
    return text.replace("@VERSION@", version).replace("@BASE_URL@", base_url())


def try_archive(version, target, path):
    with tempfile.TemporaryDirectory(prefix="transcript-root-") as folder:
        root, timer = pathlib.Path(folder), Timer()
        run(["tar", "xzf", path, "--strip-components", "1", "-C", root])
        installed = f"installed in {timer}"
        pages = [page.name for page in (root / "man").iterdir()]
        completions = {shell: (root / "completions" / name).read_text() for shell, name in SHELLS.items()}
        checked = EmptyRoot(root, "/transcript", emulator_of(target)).check(version, pages, completions, FIRST_SCREENS / f"{path.name}.txt")
        return f"{installed}; {checked}"


def try_deb(version, target, path):
    if shutil.which("dpkg") is None:
        raise Skipped("there is no dpkg")
    with tempfile.TemporaryDirectory(prefix="transcript-root-") as folder:
        root = pathlib.Path(folder)
        for name in ("updates", "info", "triggers"):
            (root / "var/lib/dpkg" / name).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        forced = "architecture,depends,not-root"
        environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
        timer = Timer()
        run(["dpkg", f"--root={root}", f"--force-{forced}", "--install", path], env=environment)
        installed = f"installed in {timer}"
        share = root / "usr/share"
        pages = [page.name.removesuffix(".gz") for page in (share / "man/man1").iterdir()]
        places = {
            "bash": "bash-completion/completions/transcript",
            "zsh": "zsh/vendor-completions/_transcript",
            "fish": "fish/vendor_completions.d/transcript.fish",
        }
        completions = {shell: (share / place).read_text() for shell, place in places.items()}
        checked = EmptyRoot(root, "/usr/bin/transcript", emulator_of(target)).check(version, pages, completions, FIRST_SCREENS / f"{path.name}.txt")
        return f"{installed}; {checked}"


def try_installer(version):
    """installs over HTTP and from a folder, as a release lies below its address"""
    with tempfile.TemporaryDirectory(prefix="transcript-install-") as folder:
        home = pathlib.Path(folder, "home")
        release = pathlib.Path(folder, "served", f"v{version}")
        home.mkdir()
        release.parent.mkdir()
        release.symlink_to(OUT)
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "no_proxy": "127.0.0.1"}
        timer = Timer()
        with Served(files_of(release.parent)) as served:
            printed = run(["sh", OUT / "install.sh"], env={**environment, "TRANSCRIPT_BASE_URL": served.url})
        installed = f"installed over HTTP in {timer}, and from a folder"
        if "is not in PATH" not in printed or version not in printed:
            raise Failed(f"install.sh printed:\n{printed}")
        run(["sh", OUT / "install.sh", "--from", OUT, "--prefix", home / "elsewhere"], env=environment)
        for prefix in (home / ".local", home / "elsewhere"):
            pages = len([*prefix.glob("share/man/man1/*.1")])
            if run([prefix / "bin/transcript", "--version"]).split()[1] != version or pages < 20:
                raise Failed(f"install.sh did not install into {prefix}")
        homes = pathlib.Path(folder, "homes")
        sessions = first_screen.write_homes(homes)
        typed = first_screen.check([home / ".local/bin/transcript"], homes, sessions, shown=FIRST_SCREENS / "install.sh.txt")
        return f"{installed}; {typed}"


def try_cargo_install(profile):
    """installs from the sources as README says, with what was compiled for this machine, and runs it in an empty root"""
    with tempfile.TemporaryDirectory(prefix="transcript-root-") as folder:
        root, timer = pathlib.Path(folder), Timer()
        options = ["--quiet", "--locked", "--profile", profile, "--target", host(), "--root", root / "usr", "--no-track"]
        run([CARGO, "install", "--path", CRATE, *options], cwd=ROOT)
        installed = f"{size((root / 'usr/bin/transcript').stat().st_size)}, installed in {timer} after the build"
        return f"{installed}; {EmptyRoot(root, '/usr/bin/transcript').type_first_screen(FIRST_SCREENS / 'cargo-install.txt')}"


def attempt(what, step, *arguments):
    """runs a step, and prints how it ended and how long it took; returns its result, or None if it is skipped"""
    timer = Timer()
    try:
        result = step(*arguments)
    except Skipped as skipped:
        print(f"skipped: {what}: {skipped}", flush=True)
        return None
    print(f"{what}: {result} ({timer})" if isinstance(result, str) else f"{what} ({timer})", flush=True)
    return result


def archives_there(version):
    """the archives in target/dist, by their target"""
    named = re.compile(rf"transcript-{re.escape(version)}-(.+?)(?:\.tar\.gz|\.zip)")
    found = ((named.fullmatch(path.name), path) for path in sorted(OUT.glob("transcript-*")))
    return {match[1]: path for match, path in found if match}


def collect(package):
    """writes what names the archives of all targets, from this machine or from others: installer, formula, checksums"""
    built = archives_there(package["version"])
    (OUT / "install.sh").write_bytes(installer(package["version"]).encode())
    (OUT / "transcript.rb").write_bytes(formula(package, built).encode())
    files = [*built.values(), *sorted(OUT.glob("transcript_*.deb")), OUT / "install.sh", OUT / "transcript.rb"]
    (OUT / "SHA256SUMS").write_bytes("".join(f"{sha256(path)}  {path.name}\n" for path in files).encode())
    if not base_url():
        print("skipped: the address of the release in install.sh and transcript.rb: release/config has none")
    for path in [*files, OUT / "SHA256SUMS"]:
        print(f"  {path.name}  {size(path.stat().st_size)}", flush=True)
    return built


def pack(package, programs):
    """writes the archives of the programs, and for each processor a Debian package, of a static program if there is one"""
    # Completions and manual are the same for all targets.
    target = next(filter(runs_here, programs), None)
    if target is None:
        build(host(), "quick")
        write_documents(program_of(host(), "quick"), host())
    else:
        write_documents(programs[target], target)
    for target, program in programs.items():
        write_archive(package["version"], target, program)
    debs = {}
    for processor in DEBIAN:
        target = next((target for libc in ("musl", "gnu") if (target := f"{processor}-unknown-linux-{libc}") in programs), None)
        if target:
            debs[target] = write_deb(package, target, programs[target])
    return debs


def remove_stale():
    """removes what an earlier run packed; cargo has files of its own in this folder after `make install`"""
    for stale in [*OUT.glob("transcript[-_]*"), OUT / "SHA256SUMS", OUT / "install.sh", OUT / "transcript.rb"]:
        stale.unlink(missing_ok=True)


def build_all(targets, profile):
    for target in targets:
        program_of(target, profile).unlink(missing_ok=True)
        attempt(f"build for {target}", build, target, profile)


def test_all(version, profile, built, debs):
    for paths, step in ((built, try_archive), (debs, try_deb)):
        for target, path in paths.items():
            if "linux" in target and "linux" in host():
                attempt(f"test of {path.name}", step, version, target, path)
            else:
                print(f"skipped: test of {path.name}: this system does not run it, so it is untested")
    if host() in built and "linux" in host():
        attempt("test of cargo install --path", try_cargo_install, profile)
    else:
        print("skipped: test of cargo install --path: nothing was built for this machine")
    if any(map(runs_here, built)) and shutil.which("sh") and "windows" not in host():
        attempt("test of install.sh", try_installer, version)
    else:
        print("skipped: test of install.sh: there is no archive for this machine that it installs")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--target", action="append", help=f"build only for this; by default for this machine, {', '.join(TARGETS)}")
    a.add_argument("--profile", default="dist", help="the profile of cargo; `quick` compiles in less time")
    a.add_argument("--no-build", action="store_true", help="pack the programs that an earlier run built")
    a.add_argument("--collect", action="store_true", help="only write installer, formula and checksums for the archives that are in target/dist")
    a.add_argument("--no-test", action="store_true", help="run nothing that was packed")
    o = a.parse_args()
    timer = Timer()
    targets = o.target or [*dict.fromkeys([host(), *TARGETS])]
    OUT.mkdir(parents=True, exist_ok=True)
    try:
        package = next(package for package in metadata("--no-deps")["packages"] if package["name"] == "transcript-cli")
        if o.collect:
            collect(package)
            return 0
        remove_stale()
        if not o.no_build:
            build_all(targets, o.profile)
        programs = {target: program for target in targets if (program := program_of(target, o.profile)).exists()}
        if not programs:
            raise Failed("no program was built")
        debs = pack(package, programs)
        built = collect(package)
        if not o.no_test:
            test_all(package["version"], o.profile, built, debs)
    except Failed as failed:
        print(failed)
        return 1
    print(f"made in {timer}: {OUT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
