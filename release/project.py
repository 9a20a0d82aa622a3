"""What the scripts of this folder know about the project: its version, its crates, the address of its files, and how to run a program."""
import hashlib, http.server, json, os, pathlib, re, subprocess, threading, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO", "cargo")
LICENCES = ("LICENSE-APACHE", "LICENSE-MIT")


class Failed(Exception):
    """a step that did not do what it should, with what it printed"""


def base_url():
    """the address below which releases lie, without a slash at its end; empty while there is none"""
    configured = re.search(r"^BASE_URL=(.*)$", (ROOT / "release/config").read_text(), re.M)[1]
    return os.environ.get("TRANSCRIPT_BASE_URL", configured).strip().rstrip("/")


def run(command, **options):
    """runs a program and returns what it printed; its output is shown only when it fails"""
    ran = subprocess.run([*map(str, command)], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", **options)
    if ran.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}\nends with {ran.returncode}:\n{ran.stdout[-4000:]}{ran.stderr[-8000:]}")
    return ran.stdout


def metadata(*arguments):
    return json.loads(run([CARGO, "metadata", "--format-version", "1", "--locked", *arguments], cwd=ROOT))


def published_crates(about):
    """the crates of the workspace that are published"""
    return [package for package in about["packages"] if package["source"] is None and package["publish"] != []]


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def size(count):
    return f"{count / 1e6:.2f} MB" if count >= 100_000 else f"{count / 1e3:.1f} kB"


class Timer:
    """seconds since it was made"""

    def __init__(self):
        self.start = time.monotonic()

    def __str__(self):
        return f"{time.monotonic() - self.start:.1f} s"


class Served:
    """an HTTP server on a free port of loopback, as long as the block runs"""

    def __init__(self, handler):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def files_of(folder):
    """a handler that serves the files of a folder"""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=folder)

        def log_message(self, *_):
            pass

    return Handler
