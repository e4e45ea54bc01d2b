"""Guests that are saved, loaded, moved, reset or put to sleep while they record, that start another kernel, get and
lose CPUs, or whose tracer stands still. Each call of a workload fires once, or is told.

A record that ringside had not copied when its memory went is gone, and nobody knows of it. So where that
happens, a test first waits until all that was recorded has fired.
"""

import os
import pathlib
import re
import signal
import tempfile
import unittest
from unittest import mock

import ringside
from made_images import image_with_another_kernel
from test_attach_ends import ANOTHER, MOVED, STARTED_ANOTHER, EndCase, clean, patient
from test_attach_qmp import OPENED, Machine, begin, end, started
from test_hotplug import CPU, run as run_that_sleeps
from test_owner_snapshots import STOOD, make_disk
from test_record import recorded
from test_storm import TROUBLE

READS = 3000
SITES = ("ksys_read:entry", "vfs_read:entry", "vfs_read:return", "ksys_read:return")
SEEN = 'tick-10hz { printf("<seen> %d\\n", n); }'
COUNTS = "".join(f'fbt::{site} /execname == "workload"/ {{ @["{site}"] = count(); n++; }} ' for site in SITES)
WORK = f"workload --reads {READS} --read-size 1"
FEW = 20  # calls whose records fit into the rings


def firings(outcome):
    """Of each site."""
    counts = outcome.counts()
    return [counts.get(site, 0) for site in SITES]


class Case(EndCase):
    """The checks that the tests have in common."""

    def trace(self, machine, *options):
        """A trace of it that records."""
        return machine.trace(begin(f"{COUNTS} {SEEN}"), ["-q", "-v", "-x", "record=yes", *options])

    def work(self, machine, command=WORK):
        """Makes calls."""
        status, said = machine.port.run(command)
        self.assertEqual(status, 0, said)

    def await_firings(self, running, reads):
        """Until all that was recorded has fired."""
        running.read_until(lambda text: f"<seen> {reads * len(SITES)}\n" in text)

    def check_exact(self, outcome, reads):
        """All of these calls, by records: some wait where a ring was full."""
        self.assertEqual(firings(outcome), [reads] * len(SITES), outcome)
        self.assertRegex(outcome.stderr, "; 0 missed, 0 drops", outcome)
        self.assertGreater(recorded(outcome), reads, outcome)

    def check_ended(self, outcome, why):
        """It has said so in its last line."""
        self.assertEqual(outcome.status, 1, outcome)
        self.assertRegex(outcome.stderr.splitlines()[-1], f"^ringside: tracing ended: {why}")

    def check_within(self, outcome, least, most):
        """Firings of a trace whose last records went with their memory: no call fires twice, and nothing
        fires that was no call."""
        for count in firings(outcome):
            self.assertIn(count, range(least, most + 1), outcome)


class Owned(Case):
    """Machines of others, and their owner's commands."""

    def machine(self, image="debian-6.12"):
        """With a disk that its state can be saved to; a reset lets it boot again."""
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="ringside-disk-"))
        disk = pathlib.Path(folder) / "disk"
        make_disk(disk)
        return self.enterContext(patient(image, memory=256, options=[
            "-drive", f"if=none,id=disk,file={disk},format=qcow2", "-action", "reboot=reset"]))

    def save(self, machine):
        """The state of the machine as it is now."""
        self.assertEqual(machine.owner.human("savevm now").strip(), "")

    def load(self, machine):
        """Goes back to it."""
        self.assertEqual(machine.owner.human("loadvm now").strip(), "")

    def await_saved(self, machine):
        """Until all of it has gone to where it moves."""
        machine.owner.wait_until(lambda: machine.owner.ask("query-migrate").get("status") == "completed")

    def test_one_that_is_saved_goes_on(self):
        machine = self.machine()
        with self.trace(machine) as running:
            started(running)
            for _ in range(3):
                machine.port.start(WORK)
                machine.port.send("go")
                self.save(machine)
                status, said = machine.port.finish()
                self.assertEqual(status, 0, said)
            outcome = end(running)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertIn(STOOD, outcome.stderr.splitlines(), outcome)
        self.check_exact(outcome, 3 * READS)
        self.check_well(machine)

    def test_one_that_goes_back_ends_the_trace(self):
        """Its rings are as they were, so records come again that have fired."""
        machine = self.machine()
        for is_stopped in (False, True):
            with self.subTest(is_stopped=is_stopped), self.trace(machine) as running:
                started(running)
                self.work(machine)
                self.await_firings(running, READS)
                self.save(machine)
                self.work(machine)
                self.await_firings(running, 2 * READS)
                if is_stopped:
                    running.process.send_signal(signal.SIGSTOP)
                    self.work(machine, f"workload --reads {FEW}")
                self.load(machine)
                self.work(machine, f"workload --reads {FEW}")
                running.process.send_signal(signal.SIGCONT)
                outcome = running.finish()
                self.check_ended(outcome, "the (shim is gone|guest's memory was).* its owner has loaded a snapshot")
                # Calls after that may be seen yet.
                self.check_within(outcome, 2 * READS, 2 * READS + 2 * FEW)
            self.assertEqual(clean(machine).status, 0)
        self.check_well(machine)

    def test_one_that_is_reset_ends_the_trace(self):
        machine = self.machine("debian-6.1")
        for is_stopped in (False, True):
            with self.subTest(is_stopped=is_stopped), self.trace(machine) as running:
                started(running)
                self.work(machine)
                self.await_firings(running, READS)
                if is_stopped:
                    running.process.send_signal(signal.SIGSTOP)
                    self.work(machine, f"workload --reads {FEW}")
                machine.owner.ask("system_reset")
                machine.port.expect("ready")
                running.process.send_signal(signal.SIGCONT)
                outcome = running.finish()
                self.check_ended(outcome, "the guest rebooted|the shim is gone")
                self.check_within(outcome, READS, READS + FEW)
            self.assertIn("nothing of an earlier ringside", clean(machine).stderr)
        self.check_well(machine)

    def test_one_that_moves_ends_the_trace(self):
        """It is saved to nowhere, and its owner lets it go on where it was."""
        machine = self.machine()
        with self.trace(machine) as running:
            started(running)
            self.work(machine)
            self.await_firings(running, READS)
            machine.owner.ask("migrate", uri="exec:cat >/dev/null")
            outcome = running.finish()
        self.assertIn(f"ringside: tracing ended: {MOVED}", outcome.stderr.splitlines(), outcome)
        self.check_exact(outcome, READS)
        self.await_saved(machine)
        machine.owner.ask("cont")
        self.work(machine)
        self.assertEqual(clean(machine).status, 0)
        self.check_well(machine)

    def test_one_that_arrives_has_as_much_room(self):
        """Nothing of the stub was left in its first megabyte: rings fit there again."""
        with tempfile.TemporaryDirectory(prefix="ringside-saved-") as folder:
            saved = pathlib.Path(folder) / "saved"
            with patient("debian-6.12", memory=256) as machine:
                with self.trace(machine) as running:
                    started(running)
                    self.work(machine)
                    machine.owner.ask("migrate", uri=f"exec:cat >{saved}")
                    outcome = running.finish()
                self.assertIn(f"ringside: tracing ended: {MOVED}", outcome.stderr.splitlines(), outcome)
                self.await_saved(machine)
            with patient("debian-6.12", memory=256, options=["-incoming", f"exec:cat {saved}"],
                         boots=False) as machine:
                machine.owner.wait_until(lambda: machine.owner.status() == "running")
                self.work(machine)
                self.assertIn("nothing of an earlier ringside", clean(machine).stderr)
                # Records of 512 bytes, which need the room.
                with machine.trace(begin(OPENED), ["-q", "-x", "record=yes"]) as running:
                    started(running)
                    self.work(machine, "workload --opens 20")
                    self.assertEqual(end(running).status, 0)
                self.check_well(machine)

    @ringside.takes_long
    def test_one_that_starts_another_kernel_ends_the_trace(self):
        for image in ringside.IMAGES:
            # By one thread: QEMU may break a second kernel that boots on several.
            with self.subTest(image), image_with_another_kernel(image) as environment, \
                    mock.patch.dict(os.environ, environment), \
                    patient(image, accelerator="tcg,thread=single") as machine:
                with self.trace(machine) as running:
                    started(running)
                    machine.port.start(f"{WORK}; {ANOTHER}")
                    machine.port.send("go")
                    outcome = running.finish()
                self.check_ended(outcome, re.escape(STARTED_ANOTHER.partition(": ")[2]))
                self.check_exact(outcome, READS)
                machine.port.expect("ready")
                self.check_well(machine)


class Stopped(Case):
    """Ringside stands still while the guest records."""

    def test_what_the_rings_could_not_take_is_told_to_the_last(self):
        for full in ("drop", "wait"):
            with self.subTest(full), patient("debian-6.12") as machine:
                with self.trace(machine, "-x", f"recordfull={full}") as running:
                    started(running)
                    self.work(machine)
                    running.process.send_signal(signal.SIGSTOP)
                    self.work(machine)
                    running.process.send_signal(signal.SIGCONT)
                    self.work(machine)
                    outcome = end(running)
                self.assertEqual(outcome.status, 0, outcome)
                told = sum(map(int, re.findall(r"^ringside: (\d+) drops?: ", outcome.stderr, re.M)))
                missed = int(re.search(r"; (\d+) missed", outcome.stderr)[1])
                self.assertEqual(sum(firings(outcome)) + told, 3 * READS * len(SITES), outcome)
                self.assertEqual(missed, told, outcome)
                self.assertGreater(told, 0, outcome)
                self.check_within(outcome, 0, 3 * READS)
                self.check_well(machine)


class Processors(Case):
    """CPUs come and go."""

    def test_one_that_is_plugged_in_records(self):
        """On 6.1: 6.12 sees nothing of it, also when nobody traces."""
        with Machine("debian-6.1", options=["-smp", "1,maxcpus=2,sockets=2"]) as machine:
            with machine.trace(begin(COUNTS.replace('"]', '", cpu]')),
                               ["-q", "-v", "-x", "record=yes"]) as running:
                started(running)
                self.work(machine)
                machine.owner.ask("device_add", driver="max-x86_64-cpu", id="second", cx16=False,
                                  **{"socket-id": 1, "core-id": 0, "thread-id": 0})
                self.work(machine, f"until [ -e {CPU}/cpu1 ]; do sleep 0.2; done; echo 1 >{CPU}/cpu1/online &&"
                          f" taskset 2 {WORK}; taskset 1 {WORK}")
                outcome = end(running)
            counts = outcome.counts()
            self.assertEqual([counts.get(f"{site} {cpu}") for cpu in (0, 1) for site in SITES],
                             [2 * READS] * len(SITES) + [READS] * len(SITES), outcome)
            self.assertRegex(outcome.stderr, "; 0 missed, 0 drops", outcome)
            self.assertGreater(recorded(outcome), 2 * READS, outcome)
            self.check_left_alone(machine)

    def check_started(self, image, script):
        """A guest of ours records while and after it does the script beside a workload."""
        outcome = run_that_sleeps(COUNTS, image, f"dmesg -c >/dev/null; {WORK} --seconds 4 & {script}; wait;"
                                  f" taskset 2 {WORK}; dmesg", ["-v", "-x", "record=yes"])
        self.assertEqual(outcome.status, 0, outcome)
        self.assertIsNone(TROUBLE.search(outcome.stdout), outcome)
        reads = sum(map(int, re.findall(r"^read (\d+)$", outcome.stdout, re.M)))
        self.assertGreaterEqual(reads, 2 * READS)
        self.check_exact(outcome, reads)
        return outcome

    def test_one_that_goes_off_and_on_records(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                self.check_started(image, f"for n in 1 2 3; do echo 0 >{CPU}/cpu1/online; echo 1 >{CPU}/cpu1/online;"
                                   " done")

    def test_they_record_before_and_after_a_sleep(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                outcome = self.check_started(
                    image, "echo +20 >/sys/class/rtc/rtc0/wakealarm; echo mem >/sys/power/state")
                self.assertIn("PM: suspend exit", outcome.stdout)


if __name__ == "__main__":
    unittest.main()
