"""Probes on instructions whose faults the kernel mends: loads and stores of user memory, which is there,
has to be brought, or may not be reached. The calls end as they would without us, and each instruction
is counted once, however often it had to begin again."""

import os
import signal
import unittest
from unittest import mock

import ringside
from made_images import image_with_programs
from test_attach_ends import EndCase, clean, patient
from test_attach_qmp import begin, started
from test_instr import TROUBLE

GOOD, ABSENT, BAD = 150, 60, 70
# Instructions that go to user memory, of those that run between the workload's two calls.
COUNT = """
int calls, counts;
syscall::getppid:entry /execname == "faults"/ { counts = ++calls == 1; }
instr:vmlinux:filldir64:store-*, instr:vmlinux:do_sys_poll:store-*,
instr:vmlinux:fault_in_readable:load-*
/counts && execname == "faults" && (uint64_t)arg1 < 0x800000000000/
{ @[probefunc] = count(); }
"""
COMMAND = f"faults {GOOD} {ABSENT} {BAD}"
DMESG = "; echo '<dm''esg>'; dmesg; echo '</dm''esg>'"
# Each instruction of these functions; nothing is printed.
STORM = "instr:vmlinux:filldir64:, instr:vmlinux:do_sys_poll:, instr:vmlinux:fault_in_readable:"


class Faults(unittest.TestCase):
    def trace(self, program, image, cpus, command=COMMAND):
        environment = self.enterContext(image_with_programs(image, "faults"))
        outcome = ringside.run(program, image=image, cpus=cpus, command=command + DMESG,
                               options=["-q"], environment=environment)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertNotRegex(outcome.section("dmesg").stdout, TROUBLE)
        self.assertNotIn("ringside: ", outcome.stderr.replace("ringside: starting QEMU", ""), outcome)
        return outcome

    def test_each_access_is_counted_once_and_ends_as_without_us(self):
        for image in ringside.IMAGES:
            for cpus in (1, 4):
                with self.subTest(image=image, cpus=cpus):
                    counts = self.trace(COUNT, image, cpus).counts()
                    fine = GOOD + ABSENT
                    self.assertEqual(counts["wrong"], 0, counts)
                    # Two entries: four numbers, the name's end, and the name.
                    self.assertEqual(counts["filldir64"], 12 * fine + BAD, counts)
                    self.assertEqual(counts["do_sys_poll"], fine + BAD, counts)
                    self.assertEqual(counts["fault_in_readable"], fine + BAD, counts)

    def test_many_at_once_on_several_cpus(self):
        command = ("for n in 1 2 3 4; do faults 300 300 300 >/tmp/said$n & done; wait; cat /tmp/said*;"
                   f" {COMMAND}")
        for image in ringside.IMAGES:
            with self.subTest(image):
                outcome = self.trace(STORM + " { @[execname] = count(); }", image, 4, command)

                self.assertEqual(outcome.stdout.count("wrong 0\n"), 5, outcome)
                self.assertGreater(outcome.counts()["faults"], 4 * 900, outcome)


class Deaths(EndCase):
    def test_faults_are_mended_while_ringside_is_dead(self):
        for image in ringside.IMAGES:
            with self.subTest(image), image_with_programs(image, "faults") as environment, \
                    mock.patch.dict(os.environ, environment), patient(image) as machine:
                with machine.trace(begin(STORM + " { @ = count(); }"), ["-q"]) as running:
                    started(running)
                    self.check_faults(machine)
                    running.process.send_signal(signal.SIGKILL)
                    running.process.wait()
                self.check_faults(machine)

                cleaned = clean(machine)

                self.assertEqual(cleaned.status, 0, cleaned)
                self.assertIn("breakpoints", cleaned.stderr)
                self.check_faults(machine)
                self.assertIn("nothing of an earlier ringside", clean(machine).stderr)
                self.check_well(machine)

    def check_faults(self, machine):
        status, said = machine.port.run(COMMAND)
        self.assertEqual((status, said), (0, b"wrong 0\n"))


if __name__ == "__main__":
    unittest.main()
