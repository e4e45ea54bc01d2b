"""The storage of a machine that someone else started does not answer. QEMU's monitor stops a guest only
when all its I/O has ended, and answers nobody meanwhile: so ringside looks first, and does not ask for it.
"""

import contextlib
import signal
import subprocess
import tempfile
import time
import unittest

import ringside
from stalling_disk import StallingDisk
from test_attach_ends import EndCase, clean, patient
from test_attach_qmp import begin, started

LOAD_DISK = ("for m in $(cat /modules/virtio); do insmod /modules/$m 2>/dev/null; done;"
             " until [ -b /dev/vda ]; do sleep 0.1; done")
READ_DISK = "dd if=/dev/vda of=/dev/null bs=4096 count=1 skip={} iflag=direct </dev/null >/dev/null 2>&1 &"
PROGRAM = "fbt::vfs_*: { @ = count(); }"
# A request that stalls while its probes are placed, and is too young to be told from others, may stop the guest.
TOLD = PROGRAM + ' fbt::vfs_read:entry /!told/ { told = 1; printf("placed\\n"); }'
STALLED = "its storage does not answer, which a pause would wait for: vda has 1 request in flight"


class Storage(EndCase):
    """A guest with a disk that stalls."""

    @contextlib.contextmanager
    def machine_with_disk(self, image):
        with StallingDisk() as disk, patient(image, options=disk.options) as machine:
            self.assertEqual(machine.port.run(LOAD_DISK)[0], 0)
            yield machine, disk

    def why(self, machine):
        return subprocess.run([ringside.binary(), "why", f"qmp:{machine.path}"], text=True, capture_output=True,
                              timeout=ringside.TIMEOUT, check=True).stdout

    def stall(self, machine, disk, block):
        """A read of this block of 4 KiB does not return from now on."""
        disk.stall()
        self.assertEqual(machine.port.run(READ_DISK.format(block))[0], 0)
        self.assertTrue(disk.is_waited_for.wait(ringside.TIMEOUT))

    def check_goes_on(self, machine, disk):
        self.assertEqual(machine.owner.status(), "running")
        disk.go_on()
        self.assertEqual(machine.port.run("while killall -0 dd 2>/dev/null; do sleep 0.1; done")[0], 0)
        self.assertEqual(machine.owner.status(), "running")
        self.check_well(machine)

    def test_why_tells_and_does_not_stop_the_guest(self):
        for image in ringside.IMAGES:
            with self.subTest(image), self.machine_with_disk(image) as (machine, disk):
                self.stall(machine, disk, 1000)
                deadline = time.monotonic() + ringside.TIMEOUT
                # By the guest's clock it takes some time until that is a hang.
                while "storage does not answer: vda has 1 request in flight" not in (told := self.why(machine)):
                    self.assertIn(STALLED, told)
                    self.assertLess(time.monotonic(), deadline, told)
                self.assertIn(f"the guest was not stopped for this, because {STALLED}", told)
                self.check_goes_on(machine, disk)

    def test_why_names_a_drive_that_its_owner_slows_down(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="ringside-slow-"))
        with open(f"{folder}/disk", "wb") as file:
            file.truncate(1 << 20)
        options = ["-drive", f"if=virtio,format=raw,file={folder}/disk,throttling.bps-total=1024"]
        with patient("debian-6.12", options=options) as machine:
            self.assertEqual(machine.port.run(LOAD_DISK)[0], 0)
            for block in range(8):
                self.assertEqual(machine.port.run(READ_DISK.format(100 + block))[0], 0)
            deadline = time.monotonic() + ringside.TIMEOUT
            while "storage does not answer: vda has" not in (told := self.why(machine)):
                self.assertLess(time.monotonic(), deadline, told)
            self.assertRegex(told, r"QEMU lets its drive virtio0 \(.*/disk\) have 1024 bytes a second at most")

    def test_nothing_is_enabled(self):
        with self.machine_with_disk("debian-6.12") as (machine, disk):
            self.stall(machine, disk, 1000)
            refused = ringside.run(PROGRAM, machine=False, options=["--attach", f"qmp:{machine.path}"])
            self.assertEqual(refused.status, 1, refused)
            self.assertIn(STALLED, refused.stderr)
            self.check_goes_on(machine, disk)

    def test_a_trace_that_ends_meanwhile_says_what_stays(self):
        with self.machine_with_disk("debian-6.1") as (machine, disk):
            with machine.trace(begin(TOLD), ["-q"]) as running:
                started(running)
                self.assertEqual(machine.port.run("workload --reads 10")[0], 0)
                running.read_until(lambda text: "placed\n" in text)
                self.stall(machine, disk, 1000)
                running.process.send_signal(signal.SIGINT)
                outcome = running.finish()
            self.assertEqual(outcome.status, 1, outcome)
            self.assertIn(f"the breakpoints stay in the guest: {STALLED}", outcome.stderr)
            self.assertEqual(machine.owner.status(), "running")
            self.assertEqual(machine.port.run("workload --reads 10")[0], 0)
            disk.go_on()
            self.assertEqual((cleaned := clean(machine)).status, 0, cleaned)
            self.check_goes_on(machine, disk)


if __name__ == "__main__":
    unittest.main(verbosity=2)
