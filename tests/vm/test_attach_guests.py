"""Guests as their owners start them, of every kind that a kernel can be told to be, attached to by
their QEMU's QMP socket. Each traces the same workload twice, exactly, and says itself what it is.
"""

import contextlib
import os
import pathlib
import unittest
from unittest import mock

import guest
import ringside
from test_attach_ends import EndCase, clean, patient
from test_attach_qmp import Case, Machine, begin
from test_deaths import STORM, WORK, check_storm
from test_take_over import LEFT

KSM = pathlib.Path("/sys/kernel/mm/ksm")
# Settings of ksmd: merge all that it finds, without pausing for long.
MERGE = {"sleep_millisecs": "20", "pages_to_scan": "10000", "run": "1"}
PAGES = 5000


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


@contextlib.contextmanager
def merging():
    """The host merges equal pages, and does as before afterwards."""
    before = {name: (KSM / name).read_text().strip() for name in MERGE}
    try:
        for name, value in MERGE.items():
            (KSM / name).write_text(value)
        yield
    finally:
        for name, value in before.items():
            (KSM / name).write_text(value)


def merged_pages(pid):
    """How many pages of a process lie in others' places."""
    return int(pathlib.Path(f"/proc/{pid}/ksm_merging_pages").read_text())


class Merged(EndCase):
    """Two guests of one kernel whose pages the host merges (KSM), its text among them."""

    @ringside.takes_long
    @unittest.skipUnless(os.access(KSM / "run", os.W_OK), "only root can let the host merge pages (KSM)")
    def test_what_is_done_to_one_is_not_done_to_the_other(self):
        with merging(), patient("debian-6.12", append="nokaslr", memory=256) as one, \
                patient("debian-6.12", append="nokaslr", memory=256) as other:
            for machine in (one, other):
                machine.owner.wait_until(lambda pid=machine.pid: merged_pages(pid) > PAGES)
            with one.trace(begin(STORM), ["-q"]) as running:
                check_storm(self, running, one.port, one.owner.status)
            self.assertEqual(other.port.run(WORK)[0], 0)
            self.assertIn("nothing of an earlier ringside", clean(other).stderr)
            self.assertRegex(clean(one).stderr, LEFT)
            for machine in (one, other):
                self.check_well(machine)


if __name__ == "__main__":
    unittest.main()
