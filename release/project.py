"""What the scripts of this folder know about the project: its version, its crates, the address of its files, and how to run a program."""
import hashlib, http.server, json, os, pathlib, re, signal, subprocess, threading, time, venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO", "cargo")
LICENCES = ("LICENSE-APACHE", "LICENSE-MIT")
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
# Programs in Python that the scripts need, in an environment of their own.
TOOLS = TARGET / "release-tools"
# What the commands of README's first screen showed: a file for each package.
FIRST_SCREENS = TARGET / "first-screens"
# The longest that a tool may take to come from a registry: where there is no network, some clients wait for many minutes.
MAX_DOWNLOAD_SECONDS = 60


class Failed(Exception):
    """a step that did not do what it should, with what it printed"""


class Skipped(Exception):
    """why something cannot be done here"""


def base_url():
    """the address below which releases lie, without a slash at its end; empty while there is none"""
    configured = re.search(r"^BASE_URL=(.*)$", (ROOT / "release/config").read_text(), re.M)[1]
    return os.environ.get("TRANSCRIPT_BASE_URL", configured).strip().rstrip("/")


def run(command, **options):
    """runs a program and returns what it printed; its output is shown only when it fails, which it also does after `timeout` seconds"""
    words = [*map(str, command)]
    # A group of its own: what the program started ends with it, too.
    options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", "errors": "replace", "start_new_session": True}
    seconds = options.pop("timeout", None)
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, **options) as ran:
        try:
            out, errors = ran.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            end_group(ran)
            raise Failed(f"{' '.join(words)}\ndoes not end in {seconds} s") from None
        except BaseException:
            end_group(ran)
            raise
    if ran.returncode != 0:
        raise Failed(f"{' '.join(words)}\nends with {ran.returncode}:\n{out[-4000:]}{errors[-8000:]}")
    return out


def end_group(program):
    """ends a program that `run` started, and what it started"""
    if hasattr(os, "killpg"):
        os.killpg(program.pid, signal.SIGKILL)
    else:
        program.kill()
    program.wait()


def tool(name, *packages):
    """the path of a program of a package for Python, which is installed when it is asked for the first time"""
    program = TOOLS / "bin" / name
    if not program.exists():
        try:
            venv.create(TOOLS, with_pip=True)
            pip = [TOOLS / "bin/python", "-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "20"]
            run([*pip, *packages], timeout=MAX_DOWNLOAD_SECONDS)
        except Failed:
            raise Skipped(f"pip cannot install {' and '.join(packages)}") from None
    return program


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
