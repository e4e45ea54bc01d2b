"""The cache that one attach leaves for the next: it never holds anything but what is found anew."""

import os
import pathlib
import tempfile
import unittest
from unittest import mock

import ringside
from test_attach_qmp import Case, Machine


class Again(Case):
    """With a cache of the test's own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringside-cache-")
        self.addCleanup(folder.cleanup)
        self.above = pathlib.Path(folder.name)
        self.folder = self.above / "ringside"
        self.use(XDG_CACHE_HOME=folder.name)

    def use(self, **variables):
        """Sets them for all that is run until the test's end."""
        change = mock.patch.dict(os.environ, variables)
        change.start()
        self.addCleanup(change.stop)

    def probes(self, machine):
        """All functions of the kernel in which a probe may stand."""
        with machine.trace("fbt:vmlinux::entry", ["-l"]) as running:
            outcome = running.finish()
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertGreater(len(outcome.stdout.splitlines()), 20000)
        return outcome.stdout

    def entry(self):
        """The file of the only entry."""
        found, = self.folder.glob("*.entry")
        return found

    def test_the_second_attach_finds_and_counts_the_same(self):
        for image, cpus in ringside.EACH_ONCE:
            with self.subTest(image=image, cpus=cpus), Machine(image, cpus) as machine:
                first = self.probes(machine)
                entry = self.entry()
                kept = entry.read_bytes()
                os.utime(entry, (1, 1))
                before = entry.stat()
                self.assertEqual(self.probes(machine), first)
                self.assertEqual(entry.stat().st_ino, before.st_ino, "it was found anew")
                self.assertGreater(entry.stat().st_mtime, before.st_mtime, "it was not used")
                self.check_counts(machine)
                self.check_counts(machine)

                entry.write_bytes(kept[:-9] + b"\0" + kept[-8:])
                self.assertEqual(self.probes(machine), first)
                self.assertEqual(self.entry().read_bytes(), kept)
                self.remove()

    def remove(self):
        """As a user does it."""
        outcome = ringside.run(machine=False, verb=("clean", "--cache"))
        self.assertEqual((outcome.status, outcome.stderr),
                         (0, f"ringside: 1 entry removed from {self.folder}\n"), outcome)
        self.assertFalse(self.folder.exists())

    def test_nothing_is_kept_where_the_user_says_so(self):
        self.use(RINGSIDE_CACHE="off")
        with Machine() as machine:
            self.check_counts(machine)
        self.assertEqual(list(self.above.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
