"""A machine that was attached to is left as it was found: to the byte, however the trace ends, and
however often it is done."""

import os
import pathlib
import re
import signal
import sys
import time
import unittest

import ringside
from places import Places
from test_attach_ends import LOAD, EndCase, clean, patient
from test_attach_qmp import begin, memfd, started

TIMES = int(os.environ.get("RINGSIDE_TIMES") or (20 if ringside.QUICK else 100))
READS = 500
TRACED = "fbt::vfs_*:, syscall:::, instr::vfs_read: { @ = count(); }"
ENDS = {"exit(0)": lambda process: None,  # by the program itself
        "SIGINT": lambda process: process.send_signal(signal.SIGINT),
        "SIGTERM": lambda process: process.send_signal(signal.SIGTERM)}
# To read its memory is to pause it.
PAUSED = {"ringside: its owner has paused it: tracing waits", "ringside: it runs again"}
NOISE_KIB = 4096  # of memory that comes and goes by itself
RAM_KIB = 384 << 10  # less than each guest has


def kib(text, name):
    """A line of /proc/meminfo, or of its like."""
    return int(re.search(rf"^{name}:\s*(\d+) kB$", text, re.M)[1])


def own_kib(pid):
    """Resident memory of a QEMU's own: without the guest's RAM, of which a guest touches ever more, and
    without its translations of the guest's code."""
    total = 0
    for part in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", pathlib.Path(f"/proc/{pid}/smaps").read_text(), flags=re.M):
        if part and kib(part, "Size") < RAM_KIB and not re.match(r"\S+ .wx", part):
            total += kib(part, "Rss")
    return total


class ToTheByte(EndCase):
    """The kernel's text, constants, interrupt table and page tables, and all of the first 640 KiB."""

    def check_end(self, machine, places, name, finish):
        before = places.look()
        program = begin(f"{TRACED} syscall::sethostname:entry {{ exit(0); }}")
        with machine.trace(program, ["-q"]) as running:
            started(running)
            self.assertEqual(machine.port.run(f"workload --reads {READS}")[0], 0)
            traced = places.changed(before, places.look())
            if name == "exit(0)":
                self.assertEqual(machine.port.run("hostname guest")[0], 0)
            finish(running.process)
            outcome = running.finish()
        self.assertEqual((outcome.status, set(outcome.stderr.splitlines())), (0, PAUSED), outcome)
        self.assertIn("text", traced, "the comparison sees what is written")
        self.assertEqual(places.changed(before, places.look()), {}, name)

    def check_ends(self, image, **settings):
        with patient(image, **settings) as machine:
            places = Places(machine.port, machine.owner, machine.folder)
            for name, finish in ENDS.items():
                with self.subTest(f"{name} on {image}"):
                    self.check_end(machine, places, name, finish)
            self.check_well(machine)

    def test_of_memory_that_is_read_by_copies(self):
        self.check_ends("debian-6.1")

    def test_of_memory_that_is_shared(self):
        self.check_ends("debian-6.12", options=memfd(512))

    def test_where_page_tables_are_isolated(self):
        self.check_ends("debian-6.12", append="pti=on")


class ManyTimes(EndCase):
    """RINGSIDE_TIMES says how often."""

    def footprint(self, machine):
        """The sizes that must not grow: KiB of the guest's slabs and of QEMU's own memory, QEMU's open files."""
        slabs = kib(machine.port.run("cat /proc/meminfo")[1].decode(), "SUnreclaim")
        return slabs, own_kib(machine.pid), len(os.listdir(f"/proc/{machine.pid}/fd"))

    def trace_once(self, machine):
        """An attach, exact counts, and a detach."""
        with machine.trace(begin(f"{TRACED} syscall::getppid:entry {{ @calls = count(); }}"
                                 ' END { printa("calls %@d\\n", @calls); }'), ["-q"]) as running:
            started(running)
            self.assertEqual(machine.port.run(f"workload --getppid {READS}")[0], 0)
            running.process.send_signal(signal.SIGINT)
            outcome = running.finish()
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(outcome.counts()["calls"], READS, outcome)

    def quickest(self, machine):
        """Seconds of the same work of the guest's, the least of five."""
        times = []
        for _ in range(5):
            begun = time.monotonic()
            self.assertEqual(machine.port.run("workload --reads 20000")[0], 0)
            times.append(time.monotonic() - begun)
        return min(times)

    # QEMU indexes all that it has ever translated, until this is full, and each attach has code translated anew.
    FEW_TRANSLATIONS = "tcg,thread=multi,tb-size=16"  # MiB

    def check_times(self, image, times):
        with patient(image, accelerator=self.FEW_TRANSLATIONS) as machine:
            self.trace_once(machine)  # after that the caches are there
            before = self.quickest(machine)
            self.assertEqual(machine.port.run(LOAD)[0], 0)
            first = self.footprint(machine)
            for number in range(times):
                with self.subTest(f"the {number}th on {image}"):
                    self.trace_once(machine)
            last = self.footprint(machine)
            self.assertEqual(machine.port.run("rm /tmp/go; sleep 1")[0], 0)
            after = self.quickest(machine)
            print(f"{image}, attached {times} times: slabs {first[0]} to {last[0]} KiB, QEMU {first[1]} to "
                  f"{last[1]} KiB; 20,000 reads {before:.3f} s before, {after:.3f} s after", file=sys.stderr)
            self.assertLess(last[0], first[0] + NOISE_KIB)
            self.assertLess(last[1], first[1] + NOISE_KIB)
            self.assertEqual(last[2], first[2])
            self.assertIn("nothing of an earlier ringside", clean(machine).stderr)
            self.check_well(machine)

    def test_under_load(self):
        for image in ringside.IMAGES:
            self.check_times(image, TIMES // len(ringside.IMAGES))


if __name__ == "__main__":
    unittest.main()
