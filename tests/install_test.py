#!/usr/bin/env python3
"""`meson install` puts everything in its place, and what it installs runs: install_test.py BUILD"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop())
EXPECTED = ("bin/ringside", "share/ringside/lib/procfs.d", "share/man/man1/ringside.1",
            "share/man/man7/ringside-d.7", "share/bash-completion/completions/ringside",
            "share/zsh/site-functions/_ringside")


class Installing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run(["meson", "install", "--no-rebuild", "-C", BUILD, "--destdir", cls.folder.name],
                       check=True, capture_output=True)
        cls.prefix = next(pathlib.Path(cls.folder.name).rglob("bin/ringside")).parents[1]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_everything_is_there_and_nothing_else(self):
        there = {path.relative_to(self.prefix).as_posix()
                 for path in self.prefix.rglob("*") if path.is_file()}

        self.assertLessEqual(set(EXPECTED), there)
        self.assertEqual({path for path in there if not path.startswith("share/ringside/lib/")},
                         {path for path in EXPECTED if not path.startswith("share/ringside/lib/")})
        sources = pathlib.Path(__file__).resolve().parents[1] / "dif/d/library"
        # regs.d is made from the architecture's table of registers.
        self.assertEqual({path.name for path in (self.prefix / "share/ringside/lib").iterdir()},
                         {path.name for path in sources.glob("*.d")} | {"regs.d"})

    def test_the_installed_command_finds_its_libraries(self):
        done = subprocess.run(
            [self.prefix / "bin/ringside", "-q", "-n",
             'BEGIN { printf("%d\\n", SIGKILL); exit(0); }'],
            capture_output=True, text=True, check=False, timeout=600,
            env={"PATH": os.environ["PATH"], "HOME": self.folder.name})

        self.assertEqual((done.returncode, done.stdout.strip()), (0, "9"), done.stderr)

    def test_a_stripped_command_is_small(self):
        small = pathlib.Path(self.folder.name, "stripped")
        subprocess.run(["strip", "-o", small, self.prefix / "bin/ringside"], check=True)

        self.assertLess(small.stat().st_size, 10 << 20)


if __name__ == "__main__":
    unittest.main()
