#!/usr/bin/env python3
"""The parts of images/build, without the network: apt sources and the archive's layout."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "images"))

import private_apt  # noqa: E402
from initramfs import Archive  # noqa: E402

DEB822 = """# a comment
Types: deb deb-src
URIs: http://mirror/debian
# another
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb-src
URIs: http://mirror/debian
Suites: bookworm

Types: deb
URIs: http://mirror/off/debian
Suites: bookworm
Enabled: no
"""
KEY = {"signed-by": "/usr/share/keyrings/debian-archive-keyring.gpg"}


class Sources(unittest.TestCase):
    def test_deb822_stanzas(self):
        self.assertEqual(list(private_apt._deb822_sources(DEB822)),
                         [(["http://mirror/debian"], ["bookworm", "bookworm-updates"], KEY)])

    def test_one_line_sources(self):
        text = ("# deb http://no/debian bookworm main\n"
                "deb [arch=amd64 signed-by=/k.gpg] http://m/debian bookworm main contrib\n"
                "deb-src http://m/debian bookworm main\ndeb http://m/x stable main\n")

        self.assertEqual(list(private_apt._one_line_sources(text)),
                         [(["http://m/debian"], ["bookworm"], {"signed-by": "/k.gpg"}),
                          (["http://m/x"], ["stable"], {})])

    def test_backports_come_from_the_archive_itself(self):
        sources = [("http://m/debian", "bookworm", KEY),
                   ("http://m/debian", "bookworm-updates", KEY),
                   ("http://m/debian-security", "bookworm-security", KEY),
                   ("http://other.example/tool", "bookworm", {})]
        signed = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"

        self.assertEqual(private_apt.select_sources(sources, backports=True),
                         [f"deb {signed} http://m/debian bookworm-backports main"])
        self.assertEqual(private_apt.select_sources(sources, backports=False), [
            f"deb {signed} http://m/debian bookworm main",
            f"deb {signed} http://m/debian bookworm-updates main",
            f"deb {signed} http://m/debian-security bookworm-security main"])

    def test_a_system_without_the_release_is_told_what_to_do(self):
        with self.assertRaisesRegex(private_apt.AptError, "add Debian 12"):
            private_apt.select_sources([("http://m/debian", "trixie", {})], backports=False)


class ArchiveLayout(unittest.TestCase):
    def archive(self):
        """One of each kind of entry."""
        archive = Archive()
        archive.file("a/b/file", b"12345", 0o755)
        archive.file("a/b/other", b"")
        archive.symlink("a/link", "b/file")
        return archive.bytes()

    def test_equal_input_gives_equal_bytes(self):
        self.assertEqual(self.archive(), self.archive())
        self.assertEqual(len(self.archive()) % 4, 0)

    @unittest.skipUnless(shutil.which("cpio"), "cpio is not installed")
    def test_cpio_reads_it(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["cpio", "--quiet", "-id"], input=self.archive(), cwd=folder, check=True)
            top = pathlib.Path(folder)

            self.assertEqual((top / "a/link").read_bytes(), b"12345")
            self.assertEqual((top / "a/b/file").stat().st_mode & 0o777, 0o755)
            self.assertEqual((top / "a/b/other").read_bytes(), b"")


if __name__ == "__main__":
    unittest.main()
