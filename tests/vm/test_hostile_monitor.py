"""Attaching to a QEMU whose monitor lies, falls silent or never ends (hostile_monitor.py).

Each time ringside says in a line what is wrong, or traces as if nothing were; it neither crashes nor waits
for ever; and the guest, of which an honest monitor tells afterwards, runs on, and is traced exactly.
"""

import os
import pathlib
import resource
import shutil
import tempfile
import unittest

import ringside
from test_attach_qmp import COUNT, READS, Machine, begin, end, started

HOSTILE = pathlib.Path(__file__).with_name("hostile_monitor.py")
PROGRAM = f"{COUNT} profile-97 {{ @samples = count(); }} tick-1s {{ exit(0); }}"
ROUNDS = 5
MOST_MEMORY = 1 << 30  # bytes, of a ringside's own; 200 MiB are usual


class HostileMonitor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "plan"
        cls.be("honest")
        os.environ.update(QEMU=os.environ.get("RINGSIDE_QEMU") or shutil.which("qemu-system-x86_64"),
                          HOSTILE=str(cls.plan))
        cls.machine = cls.enterClassContext(Machine(qemu=HOSTILE))

    @classmethod
    def be(cls, kind, seed=0):
        """How the monitor is to the next client."""
        cls.plan.write_text(f"{kind} {seed}")

    def check(self, kind, seed=0, words=None):
        """One ringside, and the guest afterwards."""
        self.be(kind, seed)
        with self.machine.trace(PROGRAM, ["-q"]) as running:
            # A ringside that wants more than this says so.
            resource.prlimit(running.process.pid, resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
            outcome = running.finish()
        self.assertIn(outcome.status, (0, 1), (kind, seed, outcome))
        self.assertNotIn("out of memory", outcome.stderr, (kind, seed))
        for line in outcome.stderr.splitlines():
            self.assertRegex(line, r"^ringside: [ -~]+$", (kind, seed, outcome))
        if words is not None:
            self.assertEqual(outcome.status, 1, outcome)
            self.assertRegex(outcome.stderr, words, outcome)
        self.check_health(kind, seed)

    def check_health(self, *what):
        """An honest monitor takes out what is left, and traces exactly."""
        self.be("honest")
        if self.machine.owner.status() == "paused":
            self.machine.owner.ask("cont")
        with self.machine.trace(begin(COUNT), ["-q"]) as running:
            started(running)
            status, said = self.machine.port.run(f"workload --reads {READS}")
            outcome = end(running)
        self.assertEqual((status, outcome.status), (0, 0), (what, outcome))
        truth = ringside.Outcome(0, said.decode(), "").counts()
        self.assertEqual(outcome.counts()["reads"], truth["read"], (what, outcome))

    @ringside.takes_long
    def test_silence_ends(self):
        self.check("silence", words="did not answer in time")

    def test_a_message_that_never_ends(self):
        self.check("endless", words=r"^ringside: ")

    def test_nesting_without_end(self):
        self.check("depth", words=r"^ringside: ")

    @ringside.takes_long
    def test_answers_to_what_was_not_asked(self):
        for seed in range(2):
            self.check("ids", seed)

    def test_floods_of_events(self):
        self.check("events")

    def test_addresses_that_are_not_the_guests(self):
        self.check("addresses", words=r"^ringside: ")

    def test_answers_that_are_broken_somewhere(self):
        for seed in range(int(os.environ.get("RINGSIDE_TIMES", ROUNDS))):
            self.check("anything", seed)


if __name__ == "__main__":
    unittest.main()
