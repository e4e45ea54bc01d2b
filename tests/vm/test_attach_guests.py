"""Guests as their owners start them, of every kind that a kernel can be told to be, attached to by
their QEMU's QMP socket. Each traces the same workload twice, exactly, and says itself what it is.
"""

import os
import unittest
from unittest import mock

import guest
from test_attach_qmp import Case, Machine


class Guests(Case):
    """Each with what was asked of a guest's kernel on its command line, and what its machine has."""

    def check(self, image, cpus, append, command, truth, **settings):
        """Exact counts in a guest in which `command` prints what the pattern `truth` fits."""
        with Machine(image, cpus, append=append, **settings) as machine:
            status, said = machine.port.run(command)
            self.assertEqual(status, 0, said)
            self.assertRegex(said.decode(), truth)
            self.check_counts(machine)
            self.check_counts(machine)

    def test_page_tables_of_four_and_of_five_levels(self):
        # Its word for the CPU's feature is la57; it drops that when it uses four.
        command = "grep -o -w -m1 la57 /proc/cpuinfo || echo four"
        for image, cpus, append, truth in (("debian-6.1", 3, "no5lvl", "four"),
                                           ("debian-6.12", 1, "no5lvl", "four"),
                                           ("debian-6.12", 4, "", "la57")):
            with self.subTest(image=image, append=append):
                self.check(image, cpus, append, command, truth)

    def test_a_kernel_where_it_was_linked(self):
        for image in ("debian-6.1", "debian-6.12"):
            with self.subTest(image):
                self.check(image, 2, "nokaslr", "grep -w _text /proc/kallsyms", "ffffffff81000000")

    def test_isolated_page_tables(self):
        for image, cpus, append in (("debian-6.1", 4, "pti=on"), ("debian-6.12", 2, "pti=on no5lvl")):
            with self.subTest(image):
                self.check(image, cpus, append, "dmesg", "isolation: enabled")

    def test_locked_down_kernels(self):
        command = "mount -t securityfs s /sys/kernel/security; cat /sys/kernel/security/lockdown"
        for image, mode in (("debian-6.1", "integrity"), ("debian-6.12", "confidentiality")):
            with self.subTest(image=image, mode=mode):
                self.check(image, 2, f"lockdown={mode}", command, rf"\[{mode}\]")

    def test_more_memory_than_the_host_has(self):
        options = ["-object", "memory-backend-ram,id=mem,size=48G,reserve=off",
                   "-machine", "pc,memory-backend=mem"]
        self.check("debian-6.12", 2, "", "grep MemTotal /proc/meminfo", r"MemTotal: +4\d{7} kB",
                   memory=48 << 10, options=options)

    def test_debian_unstables_kernel(self):
        with mock.patch.dict(os.environ, RINGSIDE_IMAGES=guest.suite_image("sid")):
            for cpus, append in ((1, ""), (4, "pti=on")):
                with self.subTest(cpus=cpus, append=append):
                    self.check("debian-sid", cpus, append, "cat /proc/version",
                               r"Linux version (?!6\.)")


if __name__ == "__main__":
    unittest.main()
