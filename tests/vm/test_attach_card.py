"""More room than the first megabyte has: a card with memory, plugged into a machine that runs with
its owner's leave (--attach qmp:PATH,ivshmem), and what is told where there is none."""

import json
import os
import re
import unittest
from unittest import mock

import guest
import ringside
from test_attach_qmp import COUNT, READS, Case, Machine, begin, end, memfd, started

PORT = ["-machine", "q35", "-device", "pcie-root-port,id=port1,chassis=1,slot=1"]


class Cards(Case):
    """All of fbt in machines that somebody else started."""

    def card(self, machine):
        """The sizes of the memory of cards of ours."""
        return [region["size"] for device in objects(machine.owner.ask("query-pci"))
                if device.get("qdev_id") == "ringside-card"
                for region in device["regions"] if region["bar"] == 2]

    def trace(self, machine, program):
        """A ringside that may plug in a card."""
        return ringside.Run(begin(program), machine=False,
                            options=["-q", "--attach", f"qmp:{machine.path},ivshmem"])

    def check_exact(self, machine, more=""):
        """The workload's reads are counted beside whatever else is enabled."""
        with self.trace(machine, f"{COUNT} {more}") as running:
            started(running)
            cards = self.card(machine)
            status, said = machine.port.run(f"workload --reads {READS}")
            outcome = end(running)
        self.assertEqual((status, outcome.status, outcome.stderr), (0, 0, ""), outcome)
        truth = ringside.Outcome(0, said.decode(), "").counts()
        self.assertEqual(outcome.counts()["reads"], truth["read"], outcome)
        self.check_gone(machine)
        return cards

    def check_gone(self, machine):
        """No card, and no memory for one."""
        self.assertNotIn("ringside", json.dumps(machine.owner.ask("query-pci")))
        self.assertNotIn("ringside", json.dumps(machine.owner.ask("query-memdev")))
        self.check_left_alone(machine)

    def test_all_of_fbt_fits_on_a_card(self):
        with Machine("debian-6.12", 2, 512, memfd(512)) as machine:
            everything = ("\n#pragma D option maxslow=100\n"
                          "fbt::: { @fired[probename] = count(); } END { trunc(@fired); }")
            self.assertEqual(self.check_exact(machine, everything), [16 << 20])
            self.check_exact(machine)  # and again
            self.check_counts(machine)  # also without one

    @ringside.takes_long
    def test_cards_in_machines_of_other_kinds(self):
        kinds = {"private memory": ("debian-6.1", 1, 512, [], 16 << 20),
                 "above 4 GiB": ("debian-6.12", 2, 5120, [], 16 << 20),
                 "behind a port": ("debian-6.12", 1, 512, PORT, 2 << 20)}
        for kind, (image, cpus, memory, options, size) in kinds.items():
            with self.subTest(kind), Machine(image, cpus, memory, options) as machine:
                self.assertEqual(self.check_exact(machine), [size])
                self.assertEqual(self.check_exact(machine), [size])
                self.check_counts(machine)

    def test_without_one_the_limit_is_told_before_anything_stands(self):
        with Machine() as machine:
            outcome = ringside.run("fbt::: { @ = count(); }", machine=False,
                                   options=["-q", "--attach", f"qmp:{machine.path}"])

            self.assertEqual((outcome.status, len(outcome.stderr.splitlines())), (1, 1), outcome)
            told = re.search(r"could not enable tracing: (\d+) probes fit, (\d+) asked: .*; "
                             r"for more room plug in a card: --attach TARGET,ivshmem", outcome.stderr)
            self.assertTrue(told, outcome)
            self.assertTrue(30_000 < int(told[1]) < int(told[2]), outcome)
            self.check_counts(machine)

    def test_a_machine_without_slots_is_left_as_it_was(self):
        with Machine(options=["-machine", "q35"]) as machine:
            outcome = ringside.run("BEGIN { exit(0); }", machine=False,
                                   options=["--attach", f"qmp:{machine.path},ivshmem"])

            self.assertEqual((outcome.status, len(outcome.stderr.splitlines())), (1, 1), outcome)
            self.assertIn("the machine takes no card while it runs", outcome.stderr)
            self.check_gone(machine)
            self.check_counts(machine)

    def test_what_a_killed_ringside_has_left_on_a_card_is_taken_out(self):
        with Machine(cpus=2) as machine:
            with self.trace(machine, "fbt::vfs_*: { @ = count(); }") as running:
                started(running)
                running.process.kill()
                running.process.wait()
                ringside.wait_for_end(running.mark)
            self.assertEqual(self.card(machine), [16 << 20])
            self.assertEqual(machine.port.run("workload --reads 100")[0], 0)

            self.check_counts(machine, news=True)

            self.check_gone(machine)

    def test_a_kernel_that_keeps_no_memory_below_1_mib(self):
        with mock.patch.dict(os.environ, RINGSIDE_IMAGES=guest.suite_image("bullseye")):
            for cpus, append in ((1, ""), (4, "pti=on")):
                with self.subTest(cpus), Machine("debian-bullseye", cpus, append=append) as machine:
                    outcome = ringside.run("fbt::vfs_read:entry { @ = count(); }", machine=False,
                                           options=["--attach", f"qmp:{machine.path}"])
                    self.assertIn("--attach TARGET,ivshmem", outcome.stderr)
                    self.check_exact(machine)
                    self.check_exact(machine, "fbt::vfs_*: { @fired[probefunc] = count(); }"
                                              " END { trunc(@fired); }")


def objects(value):
    """Every object in an answer, however deep."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from objects(each)


if __name__ == "__main__":
    unittest.main()
