#!/usr/bin/env python3
"""Runs the tests that claude-agent-sdk has of its session functions with ours in their place.

Usage: bindings_sdk_tests.py [--sdk VERSION] [--wheel FILE] [--node FOLDER]

Takes SDK and tests from PyPI, the newest ones without --sdk, into a temporary folder; they are not part of this repository. The
wheel is that in bindings/python/dist. With --node, an npm project that has the package `transcript-engine`, every call goes to that package.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

BINDINGS = Path(__file__).resolve().parent.parent / "bindings"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sdk", metavar="VERSION")
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--node", type=Path)
    arguments = parser.parse_args()
    wheel = arguments.wheel or next((BINDINGS / "python" / "dist").glob("*.whl"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        python = folder / "venv" / "bin" / "python"
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        sdk = "claude-agent-sdk" if arguments.sdk is None else f"claude-agent-sdk=={arguments.sdk}"
        source = ["download", "--no-deps", "--no-binary", ":all:", "-d", folder, sdk]
        subprocess.run([*pip, *source], check=True)
        with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
        tests_of_sdk = next(folder.glob("claude_agent_sdk-*/"))
        version = tests_of_sdk.name.removeprefix("claude_agent_sdk-")
        print(f"claude-agent-sdk {version}", flush=True)
        packages = [f"claude-agent-sdk=={version}", "pytest", "pytest-asyncio", "anyio", wheel]
        subprocess.run([*pip, "install", *packages], check=True)
        environment = {**os.environ, "PYTHONPATH": str(BINDINGS / "python" / "tools")}
        if arguments.node is not None:
            environment["TRANSCRIPT_SDK_NODE"] = str(arguments.node.resolve())
        tests = ["tests/test_sessions.py", "tests/test_session_mutations.py"]
        done = subprocess.run(
            [python, "-m", "pytest", "-q", "--tb=line", "-p", "sdk_plugin", *tests],
            cwd=tests_of_sdk,
            env=environment,
        )
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
