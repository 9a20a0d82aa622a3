#!/usr/bin/env python3
"""tests/remote_test.py: runs the tests that need a server that speaks S3, against one on loopback.

Installs moto (PyPI) into target/moto if it is missing, starts it on a free port, creates the bucket `transcript-test`, runs `cargo test` with
the address in TRANSCRIPT_TEST_S3, and stops the server by its process id. Then two machines keep into a bucket for some rounds, and outputs are searched for secrets
(tests/remote). Says `skipped` and ends with 0 where moto cannot be installed."""
import argparse, json, os, pathlib, shutil, socket, subprocess, sys, tempfile, time, urllib.error, urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
MOTO = "moto[server]==5.2.*"
CARGO = os.environ.get("CARGO", "cargo")
CRATE = ROOT / "crates" / "transcript-objects"
TESTS = ["test", "--locked", "-p", "transcript-objects"]


def python_with_moto():
    """Returns an interpreter that has moto; `None` where it cannot be installed."""
    folder = TARGET / "moto"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    has_moto = [str(python), "-c", "import moto.server"]
    if python.exists() and not subprocess.run(has_moto, capture_output=True).returncode:
        return python
    steps = [[sys.executable, "-m", "venv", str(folder)], [str(python), "-m", "pip", "-q", "install", "--disable-pip-version-check", MOTO], has_moto]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True)
        if done.returncode:
            print("skipped: moto cannot be installed: %s" % (done.stderr.strip().splitlines() or ["no reason"])[-1])
            return None
    return python


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def create_bucket(endpoint, server):
    """Waits for the server, and creates the bucket."""
    for _ in range(300):
        if server.poll() is not None:
            raise SystemExit("the server ended with %d" % server.returncode)
        try:
            request = urllib.request.Request(endpoint + "/transcript-test", method="PUT")
            return urllib.request.urlopen(request, timeout=10).close()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise SystemExit("the server does not answer")


def workspace_tests():
    """Returns the program with the tests of the crate that `make unit` has built."""
    built = subprocess.run([CARGO, "test", "--workspace", "--locked", "--no-run", "--message-format=json"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "it" and pathlib.Path(message["manifest_path"]).parent == CRATE:
            return message["executable"]
    raise SystemExit("cargo built no tests of transcript-objects")


def judge_command(is_built):
    """Runs the scripts that judge the command over a bucket, for a short time; returns their exit code."""
    if not shutil.which("zstd"):
        print("skipped: no command zstd, with which archives are read apart from our own code")
        return 0
    if not is_built:
        subprocess.run([CARGO, "build", "-q", "--locked", "-p", "transcript-cli"], cwd=ROOT, check=True)
    binary = str(TARGET / "debug" / "transcript")
    for script, *options in (["two_machines.py", "--rounds", "12"], ["canary.py"]):
        command = [sys.executable, str(ROOT / "tests" / "remote" / script), binary, *options]
        print(" ".join(["tests/remote/" + script, *options]), flush=True)
        if failed := subprocess.run(command, cwd=ROOT).returncode:
            return failed
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", action="store_true", help="use what `make unit` has built, which takes less time after it, and more without")
    options = parser.parse_args()
    python = python_with_moto()
    if python is None:
        return 0
    port = free_port()
    endpoint = "http://127.0.0.1:%d" % port
    with tempfile.TemporaryDirectory() as scratch, open(pathlib.Path(scratch, "log"), "wb") as log:
        server = subprocess.Popen([str(python), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], cwd=scratch, stdout=log, stderr=log)
        try:
            create_bucket(endpoint, server)
            environment = {**os.environ, "TRANSCRIPT_TEST_S3": endpoint, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
            command = [workspace_tests()] if options.workspace else [CARGO, *TESTS]
            print("TRANSCRIPT_TEST_S3=%s %s" % (endpoint, " ".join(command)), flush=True)
            failed = subprocess.run(command, cwd=CRATE, env=environment).returncode
            return failed or judge_command(options.workspace)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    sys.exit(main())
