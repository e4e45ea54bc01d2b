"""Many firings at once on two vCPUs: exact counts, and a guest that outlives ringside's death.

When ringside was killed nobody is left at the guest's serial ports. The guest then writes its
verdict (the workload's report and the kernel's log) to a file of its own, which is read where it
lies: in the guest's memory.
"""

import os
import pathlib
import re
import time
import unittest

import ringside
from test_lifecycle import wait_for_firings

WORKLOAD = ("workload --reads 20 --read-sizes 16,512,4096 --writes 10 --opens 5 --getppid 50"
            " --processes 2 --threads 3")
# The calls that each round of each of the 6 threads makes.
ROUND = {"read": 20, "getppid": 50}
HOT = ('fbt::vfs_read:entry, fbt::vfs_write:entry /execname == "workload" && arg2 > 0/'
       " { @calls[execname, probefunc] = count(); @seen = count(); }"
       ' fbt::vfs_read:return /execname == "workload" && arg1 > 0/'
       " { @bytes[execname, probefunc] = quantize(arg1); @sum = sum(arg1); }"
       ' fbt::do_filp_open:entry /execname == "workload"/'
       " { @names[stringof(args[1]->name)] = count(); }"
       ' syscall:::entry /execname == "workload" && pid > 1/'
       ' { @[strjoin("call ", probefunc)] = count(); }')
TICK = ' tick-10hz { printa("<seen> %@d\\n", @seen); }'
ALL = "fbt:::entry { @seen = count(); }"
# The quotes keep the marks out of the command's own text.
VERDICT = ('dmesg -c >/dev/null; {{ {}; echo status $?; }} >/tmp/report;'
           ' {{ echo "<verd""ict>"; cat /tmp/report; dmesg | tail -c 2000; echo "</verd""ict>"; }}'
           " >/tmp/verdict; sleep 1000")
TROUBLE = re.compile(r"BUG|Oops|WARNING|stall|lockup|hung|Call Trace|general protection|int3")


def written_memory(pid):
    """Yields the parts of a QEMU's guest memory that were ever written."""
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            if "memfd:" not in os.readlink(link):
                continue
            memory = open(link, "rb", buffering=0)
        except OSError:
            continue  # QEMU has closed it in the meantime
        with memory:
            end = os.fstat(memory.fileno()).st_size
            at = 0
            while at < end:
                try:
                    at = os.lseek(memory.fileno(), at, os.SEEK_DATA)
                except OSError:
                    break  # only a hole is left
                hole = os.lseek(memory.fileno(), at, os.SEEK_HOLE)
                yield os.pread(memory.fileno(), hole - at, at)
                at = hole


class Storm(unittest.TestCase):
    def wait_for_verdict(self, running):
        """The verdict, as an outcome, once it lies in the memory of the guest that was left."""
        deadline = time.monotonic() + ringside.TIMEOUT
        while time.monotonic() < deadline:
            left = running.qemu()
            self.assertTrue(left, "the guest ended")
            for part in written_memory(left[0]):
                match = re.search(rb"<verdict>\n([^\0]{1,4000}?)</verdict>\n", part)
                if match:
                    return ringside.Outcome(0, match[1].decode(errors="replace"), "")
            time.sleep(0.5)  # nobody is left who could tell
        self.fail("no verdict in time")

    def check_report(self, outcome):
        """The workload's own counts, and no word of trouble from the kernel."""
        counts = outcome.counts()
        self.assertGreater(counts["rounds"], 6, outcome)
        for name, each in ROUND.items():
            self.assertEqual(counts[name], each * counts["rounds"], outcome)
        self.assertIsNone(TROUBLE.search(outcome.stdout), outcome)

    def check_death(self, program, image, seconds):
        command = VERDICT.format(f"{WORKLOAD} --seconds {seconds}")
        running = self.enterContext(ringside.Run(program + TICK, image=image, cpus=2,
                                                 options=["-q", "--keep"], command=command))
        wait_for_firings(running)

        running.process.kill()
        running.process.wait()

        outcome = self.wait_for_verdict(running)
        self.assertEqual(outcome.counts()["status"], 0, outcome)
        self.check_report(outcome)

    def test_hot_probes_lose_nothing(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                outcome = ringside.run(
                    HOT + ' END { printa("<sum> %@d\\n", @sum); }', image=image, cpus=2,
                    options=["-q"], command=f"{WORKLOAD} --seconds 5")

                counts = outcome.counts()
                self.assertEqual(outcome.status, 0, outcome)
                self.check_report(outcome)
                self.assertNotRegex(outcome.stderr, r"(?i)drop|lost|error")
                for name in ("read", "write", "openat", "getppid", "lseek"):
                    self.assertEqual(counts.get(f"call {name}"), counts[name], (name, outcome))
                self.assertEqual(counts["workload vfs_read"], counts["read"], outcome)
                self.assertEqual(counts["workload vfs_write"], counts["write"], outcome)

    def test_a_guest_outlives_us_in_a_storm_of_hot_probes(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                self.check_death(HOT, image, 8)

    def test_a_guest_outlives_us_in_a_storm_of_all_of_fbt(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                self.check_death(ALL, image, 10)


if __name__ == "__main__":
    unittest.main()
