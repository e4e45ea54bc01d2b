"""A guest whose ringside was killed in the middle: the next one finds what was left in it, says so,
takes it out, and traces the guest as if nothing had been."""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

import ringside
from test_lifecycle import wait_for_firings

HOT = ('fbt:vmlinux:vfs_*:, syscall:::entry { @ = count(); }'
       ' tick-10hz { printa("<seen> %@d\\n", @); }')
# Side by side: of each instruction of a function, the first byte.
DENSE = HOT.replace("syscall:::entry", "syscall:::, instr:vmlinux:vfs_read:")
# Calls and returns of the same function, for a while.
BOTH = ('syscall::getppid:entry { @in = count(); } syscall::getppid:return { @out = count(); }'
        ' tick-2s { exit(0); } END { printa("<in> %@d\\n", @in); printa("<out> %@d\\n", @out); }')
LEFT = r"(?m)^ringside: process (\d+) has traced this guest and did not end well: (\d+) breakpoints" \
       r" and \d+ pages of it were taken out$"


class TakeOver(unittest.TestCase):
    @contextlib.contextmanager
    def killed(self, image, options, late=None, program=HOT):
        """A kept guest in a storm whose ringside was killed, and its monitor's socket; the guardian,
        which holds the gdbserver until it sees that, is made to see it that many seconds late."""
        with tempfile.TemporaryDirectory(prefix="ringside-take-over-") as folder:
            wrapper = pathlib.Path(folder) / "qemu"
            real = os.environ.get("RINGSIDE_QEMU") or shutil.which("qemu-system-x86_64")
            wrapper.write_text(f"#!/bin/sh\nexec {shlex.quote(real)} \"$@\""
                               ' -qmp "unix:$0.qmp,server=on,wait=off"\n')
            wrapper.chmod(0o755)
            with ringside.Run(program, image=image, cpus=2, command="workload --getppid 100"
                              " --reads 100 --seconds 1000",
                              options=["-q", "--keep", "--qemu", wrapper, *options]) as running:
                wait_for_firings(running)
                guardians = [pid for pid in ringside.marked_processes(running.mark)
                             if late and pid not in (running.process.pid, *running.qemu())]
                for pid in guardians:
                    os.kill(pid, signal.SIGSTOP)
                running.process.send_signal(signal.SIGKILL)
                running.process.wait()
                for pid in guardians:
                    threading.Timer(late, os.kill, (pid, signal.SIGCONT)).start()
                yield running, f"qmp:{wrapper}.qmp"

    def attach(self, target, program):
        done = subprocess.run([ringside.binary(), "--attach", target, "-q", "-n", program],
                              capture_output=True, text=True, timeout=ringside.TIMEOUT)
        return ringside.Outcome(done.returncode, done.stdout, done.stderr)

    def check(self, image, options):
        with self.killed(image, options) as (running, target):
            first = self.attach(target, BOTH)
            second = self.attach(target, BOTH)

            left = re.search(LEFT, first.stderr, re.MULTILINE)
            self.assertTrue(left, first)
            self.assertEqual(int(left[1]), running.process.pid)
            self.assertGreater(int(left[2]), 300)
            self.assertNotIn("did not end well", second.stderr)
            for outcome in (first, second):
                self.assertEqual(outcome.status, 0, outcome)
                counts = outcome.counts()
                self.assertGreater(counts["<in>"], 0, outcome)
                # One of each vCPU's calls may be under way when tracing begins, and when it ends.
                self.assertLessEqual(abs(counts["<in>"] - counts["<out>"]), 2, outcome)

    def test_what_was_left_in_the_first_megabyte(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                self.check(image, ["--as-is"])

    def test_what_was_left_in_memory_that_was_set_aside(self):
        self.check("debian-6.1", [])

    def test_what_was_left_where_page_tables_are_isolated(self):
        self.check("debian-6.12", ["--as-is", "--append", "pti=on"])

    def test_the_guardian_of_the_killed_may_be_late(self):
        with self.killed("debian-6.1", ["--as-is"], late=0.5) as (_, target):
            outcome = self.attach(target, BOTH)

        self.assertEqual(outcome.status, 0, outcome)

    def test_clean_takes_out_all_where_they_stand_side_by_side(self):
        for image in ringside.IMAGES:
            with self.subTest(image), self.killed(image, ["--as-is"], program=DENSE) as (_, target):
                cleaned = ringside.run(machine=False, verb=["clean", target])
                outcome = self.attach(target, BOTH)

                left = re.search(LEFT, cleaned.stderr)
                self.assertTrue(left and cleaned.status == 0, cleaned)
                self.assertGreater(int(left[2]), 900)
                self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
                self.assertGreater(outcome.counts()["<in>"], 0)

    def test_clean_takes_it_out_and_says_what(self):
        with self.killed("debian-6.1", ["--as-is"]) as (_, target):
            said = [ringside.run(machine=False, verb=["clean", target]) for _ in range(2)]

        self.assertEqual([each.status for each in said], [0, 0], said)
        self.assertRegex(said[0].stderr, LEFT)
        self.assertEqual(said[1].stderr,
                         "ringside: nothing of an earlier ringside is in the guest\n")


if __name__ == "__main__":
    unittest.main()
