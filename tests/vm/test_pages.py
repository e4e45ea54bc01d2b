"""Probes of processes in pages of files that come and go: the counts are those of a program that calls its own
functions, in pages that the guest has not read yet, or has given up."""

import pathlib
import re
import tempfile
import unittest

from disks import MOUNT, disks
from made_images import Archive, dynamic_program, initrd_with
from test_attach_qmp import Machine, begin, end, started
from test_host_files import root_with
from test_pid import counts

CALLS = 1000
FUNCTIONS = ("first", "second", "third")
ENTRIES = "".join(f"pid*:pages:{name}:entry {{ @[probefunc] = count(); }} " for name in FUNCTIONS)
PASSED = "pages*:pages::passed { @passed = count(); } END { printa(\"passed %@d\\n\", @passed); }"


class Pages(unittest.TestCase):
    IMAGE, CPUS = "debian-6.12", 2

    def setUp(self):
        # The symbols are in the middle of nowhere, too, once the guest has given up all that it can.
        program = dynamic_program("pages.c", "-fno-toplevel-reorder")
        archive = Archive()
        archive.file("bin/pages", program, 0o755)
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="ringside-root-")))
        initrd = folder / "initrd"
        initrd.write_bytes(initrd_with(self.IMAGE, archive))
        self.root = root_with(folder / "root", {"mnt/ext4/pages": program})
        options = self.enterContext(disks())
        self.machine = self.enterContext(Machine(self.IMAGE, self.CPUS, options=options, initrd=initrd))
        self.guest(f"{MOUNT} && cp /bin/pages /mnt/ext4 && sync")
        self.sum = self.guest("md5sum < /bin/pages")

    def guest(self, command):
        """The output of a command in the guest."""
        status, said = self.machine.port.run(command)
        self.assertEqual(status, 0, said)
        return said.decode()

    def begin_program(self, way="given", path="/mnt/ext4/pages"):
        return re.search(r"process (\d+)", self.guest(f"{path} {CALLS} {way}"))[1]

    def trace(self, program=ENTRIES):
        return self.machine.trace(begin(program), ["-q", "--sysroot", self.root])

    def traced(self, pid, program=ENTRIES):
        """The outcome of a trace in which the process makes its calls once."""
        with self.trace(program) as running:
            started(running)
            self.go(pid)
            return end(running)

    def turn_swap_on(self):
        self.guest("busybox mkswap /dev/vdc1 > /dev/null && busybox swapon /dev/vdc1")

    def give_up(self):
        """All pages that no process has mapped; but for the file's first one, which tells its build."""
        self.guest("sync; echo 3 > /proc/sys/vm/drop_caches; head -c 1 /mnt/ext4/pages > /dev/null")

    def go(self, pid):
        said = self.guest(f"rm -f /tmp/said.{pid}; touch /tmp/go.{pid}; "
                          f"while [ ! -e /tmp/said.{pid} ]; do sleep 0.1; done; cat /tmp/said.{pid}")
        self.assertEqual(counts(said), dict.fromkeys(FUNCTIONS, CALLS))

    def check(self, outcome, rounds, **others):
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(counts(outcome.stdout), {**dict.fromkeys(FUNCTIONS, rounds * CALLS), **others})

    def check_file(self):
        """As it was, in memory and on the disk."""
        for _ in range(2):
            self.assertEqual(self.guest("md5sum < /mnt/ext4/pages"), self.sum)
            self.give_up()

    def test_that_were_not_in_memory_when_tracing_began(self):
        pid = self.begin_program()
        self.give_up()
        outcome = self.traced(pid, program=ENTRIES + PASSED)
        self.check(outcome, 1, passed=len(FUNCTIONS) * CALLS)
        self.go(pid)
        self.check_file()

    def test_that_are_given_up_and_read_again(self):
        pid = self.begin_program()
        self.go(pid)
        with self.trace() as running:
            started(running)
            for _ in range(3):
                self.go(pid)
                self.guest("sync; echo 3 > /proc/sys/vm/drop_caches")
            other = self.begin_program()
            self.guest("sync; echo 3 > /proc/sys/vm/drop_caches")
            for each in (other, pid):
                self.go(each)
            outcome = end(running)
        self.check(outcome, 5)
        self.go(pid)
        self.check_file()

    def test_that_are_given_up_while_many_processes_start(self):
        pid = self.begin_program()
        with self.trace() as running:
            started(running)
            self.guest("(while [ ! -e /tmp/enough ]; do /bin/true; done) & "
                       "(while [ ! -e /tmp/enough ]; do echo 1 > /proc/sys/vm/drop_caches; done) & true")
            rounds = 10
            for _ in range(rounds):
                self.go(pid)
            self.guest("touch /tmp/enough; wait")
            outcome = end(running)
        self.check(outcome, rounds)
        self.check_file()

    def test_that_the_kernel_moves(self):
        pid = self.begin_program()
        moved = "awk '/^compact_migrate_scanned|^pgmigrate_success/ { print $1, $2 }' /proc/vmstat"
        before = counts(self.guest(moved))
        with self.trace() as running:
            started(running)
            self.guest("(while [ ! -e /tmp/enough ]; do echo 1 > /proc/sys/vm/compact_memory; done) & true")
            for _ in range(5):
                self.go(pid)
            outcome = end(running)
        self.guest("touch /tmp/enough")
        self.check(outcome, 5)
        self.assertGreater(counts(self.guest(moved))["pgmigrate_success"], before["pgmigrate_success"])
        self.go(pid)
        self.check_file()

    def test_that_a_process_moves_to_memory_of_its_own(self):
        pid = self.begin_program("moved")
        self.check(self.traced(pid), 1)
        self.go(pid)
        self.check_file()

    def test_that_are_swapped_out(self):
        """Of a process that has copied them: there are no probes where they are out, and a line says so."""
        self.turn_swap_on()
        pid = self.begin_program("swapped")
        self.go(pid)
        outcome = self.traced(pid)
        told = re.search(r"(\d) pages? of files with probes for themselves which the guest has swapped out: they have no probes",
                         outcome.stderr)
        self.assertTrue(told, outcome)
        self.assertEqual(list(counts(outcome.stdout).values()), [CALLS] * (len(FUNCTIONS) - int(told[1])), outcome)
        self.go(pid)
        later = self.begin_program("later")
        outcome = self.traced(later, program=ENTRIES.replace("pid*", f"pid{later}"))
        self.assertEqual(counts(outcome.stdout), dict.fromkeys(FUNCTIONS, CALLS), outcome)
        self.assertIn("keep what stands there", outcome.stderr)
        self.check_file()

    def test_of_a_file_in_memory_when_swap_is_turned_on(self):
        self.guest("mkdir /mem && mount -t tmpfs none /mem && cp /bin/pages /mem")
        pid = self.begin_program(path="/mem/pages")
        with self.machine.trace(begin(ENTRIES), ["-q"]) as running:
            started(running)
            self.go(pid)
            self.turn_swap_on()
            self.go(pid)
            outcome = end(running)
        self.assertEqual((outcome.status, counts(outcome.stdout)), (0, dict.fromkeys(FUNCTIONS, CALLS)), outcome)
        self.assertIn("the guest turns on swap", outcome.stderr)
        self.assertEqual(self.guest("md5sum < /mem/pages"), self.sum)


class PagesOfOld(Pages):
    IMAGE, CPUS = "debian-6.1", 1


if __name__ == "__main__":
    unittest.main()
