"""A QEMU whose gdbstub falls silent or lies while probes are placed (hostile_qemu.py).

Waits are bounded, one line says what happened and what to do, and nothing is left behind.
"""

import os
import pathlib
import shutil
import unittest

import ringside

HOSTILE = pathlib.Path(__file__).with_name("hostile_qemu.py")


class HostileQemu(unittest.TestCase):
    def check(self, kind, words, notice=""):
        real = os.environ.get("RINGSIDE_QEMU") or shutil.which("qemu-system-x86_64")
        outcome = ringside.run(
            'fbt::vfs_read:entry { @ = count(); }', options=["-q", "--qemu", HOSTILE],
            command="workload --reads 10", environment={"HOSTILE": kind, "QEMU": real})

        self.assertEqual(outcome.status, 1, outcome)
        self.assertRegex(outcome.stderr,
                         rf"^{notice}ringside: could not enable tracing: {words}[^\n]*\n$")

    def test_a_stub_that_falls_silent_is_given_up(self):
        self.check("silent", "QEMU's gdbstub did not answer in time; this QEMU was ended, .*--qemu")

    def test_a_stub_that_never_stops_talking_is_given_up(self):
        self.check("endless", "QEMU's gdbstub did not answer in time; this QEMU was ended, .*--qemu")

    def test_a_stub_that_only_says_that_it_wrote_is_found_out(self):
        self.check("lies", "the machine says that it wrote a breakpoint at 0x[0-9a-f]+, and there "
                           "is none; start it anew")

    def test_a_stub_that_refuses_is_told(self):
        self.check("refuses", "QEMU could not write guest code at 0x[0-9a-f]+",
                   notice=r"ringside: the stub stays in \d+ pages of the guest's memory, and does "
                          r"nothing: QEMU could not write guest code at 0x[0-9a-f]+[^\n]*\n")

    def test_a_stub_that_talks_nonsense_is_given_up(self):
        self.check("nonsense", "QEMU's gdbstub sent a packet with a wrong checksum; this QEMU was "
                               "ended, .*--qemu")


if __name__ == "__main__":
    unittest.main()
