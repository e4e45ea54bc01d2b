"""A guest that livepatches a function while it is traced, takes the patch back, and does so again.

The kernel compares and patches ftrace sites, waits until no task's stack has the old function, and
tries again when it cannot read a stack; all of that beside probes in the same function, in the
patch's own, and in what everybody calls. A function that is patched does not run: its probes, and those
of its system call, do not fire, and the patch's do. Counts are the workload's own.
"""

import unittest

import guest_module
import ringside
from initramfs import Archive
from made_images import image_with
from test_modules import TROUBLE

CALLS, READS, ROUNDS = 3000, 2000, 3
WORKLOAD = f"workload --getppid {CALLS} --reads {READS}"
SYSFS = "/sys/kernel/livepatch/livepatch"
WAIT = "n=0; {}; do usleep 10000; n=$((n + 1)); [ $n -lt 12000 ] || exit 9; done"
PATCH = (f"insmod /modules/livepatch.ko || exit 8;"
         f" {WAIT.format(f'until [ $(cat {SYSFS}/transition) = 0 ]')}")
UNPATCH = f"echo 0 >{SYSFS}/enabled; {WAIT.format('until rmmod livepatch 2>/dev/null')}"
PROGRAM = """
fbt:livepatch::, fbt::vfs_*: { @probes = count(); }
fbt:vmlinux:__x64_sys_getppid:entry /execname == "workload"/ { @["function"] = count(); }
fbt:livepatch:patched_getppid:entry /execname == "workload"/ { @["patch"] = count(); }
fbt:livepatch:patched_getppid:return /execname == "workload"/ { @["return"] = count(); }
syscall::getppid:entry /execname == "workload"/ { @["call"] = count(); }
fbt::vfs_read:entry /execname == "workload"/ { @["read"] = count(); }
END { printa("<%s> %@d\\n", @); }
"""


@ringside.takes_long
class Livepatch(unittest.TestCase):
    def check(self, image, cpus, *options):
        """By each round once with the patch and once without it."""
        archive = Archive()
        archive.file("modules/livepatch.ko", guest_module.module(image, "livepatch.c"), 0o644)
        command = (f"dmesg -c >/dev/null; {WORKLOAD}; for n in $(seq {ROUNDS}); do {PATCH};"
                   f" {WORKLOAD}; {UNPATCH}; {WORKLOAD}; done; dmesg")
        with image_with(image, archive) as environment:
            outcome = ringside.run(PROGRAM, image=image, cpus=cpus, command=command,
                                   environment=environment, options=["-q", "-Z", *options])
        self.assertEqual(outcome.status, 0, outcome)
        self.assertNotRegex(outcome.stdout, TROUBLE)
        self.assertEqual(outcome.stdout.count("patching complete"), 2 * ROUNDS, outcome)
        counts = {name: count for name, count in outcome.counts().items() if name.startswith("<")}
        patched, plain = ROUNDS * CALLS, (ROUNDS + 1) * CALLS
        self.assertEqual(counts, {"<function>": plain, "<call>": plain, "<patch>": patched,
                                  "<return>": patched, "<read>": (2 * ROUNDS + 1) * READS}, outcome)

    def test_calls_go_to_the_patch_and_back_and_none_is_lost(self):
        for image, cpus in ringside.GUESTS:
            for options in (("-x", "jumpprobes=no"), ()):
                with self.subTest(image, cpus=cpus, options=options):
                    self.check(image, cpus, *options)


if __name__ == "__main__":
    unittest.main()
