"""A traced guest starts another kernel without a reset: nothing of ours is written there.

The new kernel knows nothing of the memory that was set aside for the shim. It takes nearly all of its
memory, fills it and watches it (kexec.c), and writes its verdict to a file, which is read where it
lies: in the guest's memory, as in test_storm.py.
"""

import pathlib
import re
import tempfile
import time
import unittest

import guest
import ringside
from made_images import Archive, image_with_another_kernel, initrd_with, static_program
from patient import why
from test_attach_qmp import Case, Machine
from test_storm import TROUBLE, written_memory

# The region that vmm/qemu/qemu_command.h sets aside.
REGION = ("6000000", "7000000")
REGION_PAGES = 4096
# Without KASLR, so that the new kernel itself does not lie where the shim did.
COMMAND_LINE = "console=ttyS0 panic=-1 quiet no_timer_check nokaslr"
START = f"kexec start /kexec/vmlinuz /kexec/initrd '{COMMAND_LINE}'"
COUNT = ' { @ = count(); } END { printa("<seen> %@d\\n", @); }'
# The quotes keep the marks out of the script's own text.
INIT = f"""#!/bin/sh
bb=/bin/busybox
$bb mount -t devtmpfs dev /dev
$bb mount -t proc proc /proc
$bb mount -t sysfs sys /sys
$bb mount -t tmpfs tmp /tmp
$bb ip link set lo up
export PATH=/bin
{{ workload --reads 200 --opens 20 --seconds 3; echo "status $?"
  kexec watch 5 {REGION[0]} {REGION[1]}; }} > /tmp/report 2>&1
{{ echo "<verd""ict>"; cat /tmp/report; dmesg | tail -c 1500; echo "</verd""ict>"; }} > /tmp/verdict
sleep 1000
"""


class Kexec(unittest.TestCase):
    def run_into_kexec(self, program, image, cpus, command=START):
        """A kept guest that starts its second kernel while `program` traces."""
        environment = self.enterContext(image_with_another_kernel(image, {"init": INIT.encode()}))
        return self.enterContext(ringside.Run(
            program, image=image, cpus=cpus, command=command, options=["-q", "--keep"],
            environment=environment))

    def verdict(self, running):
        """The second kernel's words, once they lie in the memory of the guest that was left."""
        deadline = time.monotonic() + ringside.TIMEOUT
        while time.monotonic() < deadline:
            left = running.qemu()
            self.assertTrue(left, "the guest ended")
            for part in written_memory(left[0]):
                if match := re.search(rb"<verdict>\n([^\0]{1,4000}?)</verdict>\n", part):
                    return ringside.Outcome(0, match[1].decode(errors="replace"), "")
            time.sleep(0.5)  # nobody is left who could tell
        self.fail("no verdict in time")

    def check_left_alone(self, running):
        verdict = self.verdict(running)

        counts = verdict.counts()
        self.assertEqual(counts["status"], 0, verdict)
        self.assertEqual(counts["read"], 200 * counts["rounds"], verdict)
        # The second kernel's own initrd may lie there, too.
        self.assertGreater(counts["pages"], REGION_PAGES // 4, "the test looks at the shim's place")
        self.assertEqual(counts["changed"], 0, verdict)
        self.assertIsNone(TROUBLE.search(verdict.stdout), verdict)

    def check(self, program, image, cpus):
        running = self.run_into_kexec(program, image, cpus)

        running.read_until(lambda text: re.search(r"<seen> [1-9]", text))
        _, stderr = running.process.communicate(timeout=ringside.TIMEOUT)

        self.assertEqual(running.process.returncode, 1, stderr)
        self.assertEqual(stderr, "ringside: tracing ended: the guest has started another kernel "
                                 "(kexec), which is not traced\n")
        self.check_left_alone(running)

    def test_nothing_is_written_into_the_kernel_that_follows(self):
        self.check("fbt::vfs_read:entry" + COUNT, "debian-6.1", 1)

    @ringside.takes_long
    def test_nor_when_all_of_fbt_is_traced(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                self.check("fbt:::" + COUNT, image, 2)


class CrashKernel(Case):
    """A guest whose crash kernel (kdump) runs, after the first one crashed on CPU 0. The first one's memory
    is whole, and CPU 1 stands in it."""

    def check(self, image):
        archive = Archive()
        archive.file("bin/kexec", static_program("kexec.c"), 0o755)
        files = guest.images_folder() / image
        for name in ("vmlinuz", "initrd"):
            archive.file(f"kexec/{name}", (files / name).read_bytes())
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="ringside-kdump-"))
        initrd = pathlib.Path(folder) / "initrd"
        initrd.write_bytes(initrd_with(image, archive))
        machine = self.enterContext(Machine(image, cpus=2, memory=1024, initrd=initrd,
                                            append="crashkernel=256M"))
        status, said = machine.port.run(
            f"kexec load /kexec/vmlinuz /kexec/initrd '{guest.APPEND} nr_cpus=1 reset_devices'")
        self.assertEqual(status, 0, said)
        machine.port.start("taskset 1 sh -c 'echo c > /proc/sysrq-trigger'")
        machine.port.send("go")
        while not machine.port.answer().startswith("ready"):
            pass
        machine.port.output()
        self.check_report(machine, image)
        machine.chardevs = machine.owner.chardevs()
        self.check_counts(machine)

    def check_report(self, machine, image):
        release = (guest.images_folder() / image / "release").read_text().strip()
        core = machine.folder / "core"
        machine.owner.ask("dump-guest-memory", paging=False, protocol=f"file:{core}")
        for target in ([f"qmp:{machine.path}"], ["--core", core]):
            text, tree = why(*target)
            self.assertEqual(tree["causes"][0], {
                "kind": "crash-kernel",
                "text": f"the guest runs its crash kernel (kdump), Linux {release}, since Linux {release} "
                        "crashed: sysrq triggered crash"}, text)
            self.assertEqual(tree["crashed_kernel"],
                             {"release": release, "reason": "sysrq triggered crash"}, text)
            modes = {vcpu["vcpu"]: vcpu["mode"] for vcpu in tree["vcpus"]}
            self.assertEqual(modes[1], "crashed-kernel", text)
            self.assertIn(modes[0], ("kernel", "user"), text)
            self.assertEqual(len(tree["cpus"]), 1, text)
        core.unlink()

    def test_it_is_told_from_the_one_that_crashed(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                self.check(image)


if __name__ == "__main__":
    unittest.main()
