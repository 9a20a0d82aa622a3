"""The examples of the README run, each after the ones before it."""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
import unittest
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


class Examples(unittest.TestCase):
    def test_the_examples_run(self) -> None:
        blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        self.assertGreater(len(blocks), 3)
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.environ["CLAUDE_CONFIG_DIR"] = folder
            os.chdir(folder)
            try:
                for block in blocks:
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(compile(block, str(README), "exec"), {})
            finally:
                os.chdir(here)
                del os.environ["CLAUDE_CONFIG_DIR"]


if __name__ == "__main__":
    unittest.main()
