"""Snapshots that the owner of a machine saves (savevm) and loads (loadvm) while ringside traces it: the
guest lives, tracing ends with a line that says why, and what a snapshot brings back of ours is taken out.
"""

import pathlib
import struct
import tempfile
import unittest

import ringside
from test_attach_ends import LOAD, EndCase, clean, patient
from test_attach_qmp import READS, begin, end, started
from test_take_over import LEFT

SOME = "fbt::vfs_*: { @ = count(); }"
STOOD = "ringside: it stood still: its owner has paused it, or saved or loaded a snapshot"


def make_disk(path, size=4 << 30):
    """An empty disk that takes snapshots: qcow2, version 2 (QEMU docs: interop/qcow2)."""
    cluster = 1 << 16
    lists = -(-size // (cluster // 8 * cluster))
    header = struct.pack(">4sIQIIQIIQQIIQ", b"QFI\xfb", 2, 0, 0, 16, size, 0, lists, 3 * cluster,
                         cluster, 1, 0, 0)
    counts = struct.pack(">4H", 1, 1, 1, 1)  # of the four clusters
    parts = (header, struct.pack(">Q", 2 * cluster), counts, bytes(8 * lists))
    path.write_bytes(b"".join(part.ljust(cluster, b"\0") for part in parts))


class Snapshots(EndCase):
    """Machines with a disk that their state is saved to."""

    def machine(self, image):
        """Under load."""
        folder = tempfile.TemporaryDirectory(prefix="ringside-disk-")
        self.addCleanup(folder.cleanup)
        disk = pathlib.Path(folder.name) / "disk"
        make_disk(disk)
        machine = self.enterContext(patient(
            image, memory=256, options=["-drive", f"if=none,id=disk,file={disk},format=qcow2"]))
        self.assertEqual(machine.port.run(LOAD)[0], 0)
        return machine

    def do(self, machine, line):
        """A line of the owner's, which says nothing unless it fails."""
        self.assertEqual(machine.owner.human(line).strip(), "")

    def loads(self, machine, running, snapshot):
        """The last line of a ringside whose guest's owner loads a snapshot."""
        self.do(machine, f"loadvm {snapshot}")
        outcome = running.finish()
        self.assertEqual(outcome.status, 1, outcome)
        self.assertEqual(machine.owner.status(), "running")
        return outcome.stderr.splitlines()[-1]

    def check_alive(self, machine):
        """Works, whatever of ours is in it."""
        status, said = machine.port.run(f"workload --reads {READS}")
        self.assertEqual(status, 0)
        self.assertIn(f"read {READS}\n", said.decode())

    @ringside.takes_long
    def test_one_of_before_the_trace(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                machine = self.machine(image)
                self.do(machine, "savevm before")
                with machine.trace(begin(SOME), ["-q"]) as running:
                    started(running)
                    last = self.loads(machine, running, "before")
                self.assertRegex(last, "^ringside: tracing ended: the (shim is gone|guest's memory was)"
                                       ".* its owner has loaded a snapshot")
                self.check_alive(machine)
                self.assertIn("nothing of an earlier ringside", clean(machine).stderr)
                self.check_well(machine)

    def test_one_of_this_very_trace(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                machine = self.machine(image)
                with machine.trace(begin(SOME), ["-q"]) as running:
                    started(running)
                    self.do(machine, "savevm during")
                    self.check_alive(machine)
                    last = self.loads(machine, running, "during")
                self.assertRegex(last, "^ringside: tracing ended: the (shim is gone|guest's memory was)"
                                       ".* its owner has loaded a snapshot")
                self.check_alive(machine)
                self.assertEqual(clean(machine).status, 0)
                self.check_well(machine)

    def test_one_of_a_trace_that_is_over(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                machine = self.machine(image)
                with machine.trace(begin(SOME), ["-q"]) as running:
                    started(running)
                    self.do(machine, "savevm during")
                    self.check_alive(machine)
                    outcome = end(running)
                self.assertEqual(outcome.status, 0, outcome)
                self.assertIn(STOOD, outcome.stderr.splitlines(), outcome)
                self.do(machine, "loadvm during")
                self.check_alive(machine)
                cleaned = clean(machine)
                self.assertEqual(cleaned.status, 0, cleaned)
                self.assertRegex(cleaned.stderr, LEFT)
                self.assertIn("nothing of an earlier ringside", clean(machine).stderr)
                self.check_well(machine)


if __name__ == "__main__":
    unittest.main()
