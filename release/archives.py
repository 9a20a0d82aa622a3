"""Archives whose bytes depend on nothing but the files in them and the time of the commit: tarballs, zip files and Debian packages. Files are given as
{name: (content, mode)}."""
import gzip, hashlib, io, os, re, subprocess, tarfile, time, zipfile

from project import ROOT


def commit_time():
    try:
        return int(subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return time.time()


# What archives say about when each file was made.
TIME = int(os.environ.get("SOURCE_DATE_EPOCH") or commit_time())


def tarball(files, compressed=True):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        folders = {"/".join(name.split("/")[:depth]) for name in files for depth in range(1, name.count("/") + 1)} - {"."}
        for folder in sorted(folders):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, TIME
            tar.addfile(entry)
        for name, (content, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(content), mode, TIME
            tar.addfile(entry, io.BytesIO(content))
    return compress(out.getvalue()) if compressed else out.getvalue()


def compress(content):
    return gzip.compress(content, 9, mtime=0)


def zip_file(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (content, mode) in sorted(files.items()):
            entry = zipfile.ZipInfo(name, time.gmtime(TIME)[:6])
            entry.external_attr, entry.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return out.getvalue()


def glibc(binary):
    """the newest version of glibc that a program asks for, as (2, 34); None if it asks for none"""
    return max(((2, int(minor)) for minor in re.findall(rb"GLIBC_2\.(\d+)", binary)), default=None)


def deb(files, control, description):
    """a Debian package; `files` are named by their paths without the first slash"""
    files = dict(files)
    for name in [name for name in files if name.startswith("usr/share/man/")]:
        content, mode = files.pop(name)
        files[f"{name}.gz"] = compress(content), mode
    kibibytes = sum(-(-len(content) // 1024) for content, _ in files.values())
    lines = [f"{key}: {value}" for key, value in {**control, "Installed-Size": kibibytes}.items() if value]
    summary, *paragraphs = description
    lines.append(f"Description: {summary}")
    lines += [f" {line}" for line in "\n.\n".join(paragraphs).split("\n")]
    sums = "".join(f"{hashlib.md5(content).hexdigest()}  {name}\n" for name, (content, _) in sorted(files.items()))
    about = {"./control": ("\n".join(lines) + "\n", 0o644), "./md5sums": (sums, 0o644)}
    about = {name: (text.encode(), mode) for name, (text, mode) in about.items()}
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": tarball(about),
        "data.tar.gz": tarball({f"./{name}": file for name, file in files.items()}),
    }
    out = b"!<arch>\n"
    for name, content in members.items():
        out += f"{name:<16}{TIME:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode() + content
        out += b"\n" * (len(content) % 2)
    return out
