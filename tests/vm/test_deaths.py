"""Deaths of ringside at moments that nobody has chosen, while it places probes, while they fire, and
while it takes them away: it is killed, runs out of memory, or is stopped for a while. The guest goes on
each time, at once or within the bound that README.md tells, and the next ringside finds what was left,
or nothing.

RINGSIDE_TIMES says how often for each guest. The guests' pauses are printed, and are no condition but
that it is within the bound, with much to spare for a busy host.
"""

import collections
import contextlib
import os
import pathlib
import random
import re
import resource
import signal
import sys
import tempfile
import time
import unittest
from unittest import mock

import guest
import ringside
from made_images import image_with_programs
from qmp import Qmp
from test_attach_ends import LOAD, EndCase, clean, patient
from test_attach_qmp import Machine, begin, started
from test_take_over import LEFT

TIMES = int(os.environ.get("RINGSIDE_TIMES") or (6 if ringside.QUICK else 12))
PROGRAM = "fbt::vfs_*:, fbt::*page*:, fbt::do_*:, syscall::: { @ = count(); }"
# How it ends, and how many of a hundred times.
KINDS = {"killed": 55, "no memory": 35, "stopped": 10}
WAYS = {"by breakpoints": "jumpprobes=no", "by jumps": "jumpprobes"}
# Nearly all places record by default: a full ring waits, or drops. Else all traps wait.
RECORDS = {"recorded": "record=auto", "dropped": "recordfull=drop", "waiting": "record=no"}
MOMENTS = ("before", "placing", "firing", "leaving")
STOPPED_FOR = 10
# The stub waits 3 s for who is silent, as a guardian does for who is stopped in a pause. A host that
# is busy lets all of us wait, too.
BOUND = 3 + 57
CALLS = 2000
WORK = f"workload --getppid {CALLS} --reads {CALLS} --read-size 1"
# It says when the workload is among its first calls. A busy host answers ten firings a second, so these
# are fewer.
STORM = ("\n#pragma D option maxslow=100\n#pragma D option switchrate=50hz\n"
         "fbt::vfs_*:entry, syscall:::entry { @ = count(); }"
         ' syscall::getppid:entry /execname == "workload" && ++made == 20/ { printf("storm\\n"); }')


class Stops(Qmp):
    """A monitor that only listens: for how long the guest has stood still."""

    def __init__(self, path):
        self._since = None
        self._longest = 0.0
        super().__init__(path)

    def note(self, event):
        stamp = event["timestamp"]["seconds"] + event["timestamp"]["microseconds"] / 1e6
        if event["event"] == "STOP":
            self._since = stamp
        elif event["event"] == "RESUME" and self._since is not None:
            self._longest = max(self._longest, stamp - self._since)
            self._since = None

    def longest(self):
        """In seconds, since this was asked before."""
        self.ask("query-status")  # what has happened by now comes before its answer
        longest, self._longest = self._longest, 0.0
        return longest


def check_storm(case, running, port, status):
    """Kills a ringside, which traces STORM, in the middle of a workload's calls. The guest makes all of
    them by itself, before the next ringside comes."""
    started(running)
    port.start(WORK)
    port.send("go")
    running.read_until(lambda text: "storm\n" in text)
    running.process.kill()
    running.process.wait()
    ended, said = port.finish()
    case.assertEqual((ended, status()), (0, "running"), said)
    case.assertEqual(ringside.wait_for_end(running.mark), [])
    counts = ringside.Outcome(0, said.decode(), "").counts()
    case.assertEqual((counts["getppid"], counts["read"]), (CALLS, CALLS), said)


class Alone(EndCase):
    """After a kill in a storm the guest goes on by itself: each kind of clock, of threads, of translations."""

    def check_alone(self, clock="", record="auto", **settings):
        append = f"{guest.PATIENT} {f'tsc=reliable clocksource={clock}' if clock else ''}"
        with Machine("debian-6.12", append=append, **settings) as machine:
            if clock:
                current = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
                self.assertEqual(machine.port.run(f"until grep -qx {clock} {current}; do sleep 1; done")[0], 0)
            self.assertEqual(machine.port.run(LOAD)[0], 0)
            with machine.trace(begin(STORM), ["-q", "-x", f"record={record}"]) as running:
                check_storm(self, running, machine.port, machine.owner.status)
            self.assertEqual(machine.port.run("rm /tmp/go")[0], 0)
            for words in (LEFT, "nothing of an earlier ringside"):
                self.assertRegex((cleaned := clean(machine)).stderr, words, cleaned)
            self.check_left_alone(machine)

    def test_each_vcpu_in_a_thread(self):
        for record in ("yes", "no"):
            with self.subTest(record=record):
                self.check_alone(record=record, cpus=2)

    def test_vcpus_in_one_thread(self):
        self.check_alone(cpus=2, accelerator="tcg,thread=single")

    @ringside.takes_long
    def test_a_clock_that_counts_instructions(self):
        for how in ("shift=0,sleep=off", "shift=7,sleep=on", "shift=auto"):
            with self.subTest(how):
                self.check_alone(accelerator="tcg,thread=single", options=["-icount", how])

    @ringside.takes_long
    def test_each_clock_of_the_guest(self):
        for clock in ("tsc", "hpet", "acpi_pm"):
            with self.subTest(clock):
                self.check_alone(clock, cpus=2)

    @ringside.takes_long
    def test_a_translator_with_little_room(self):
        """One instruction a block (-singlestep) is left out: no guest boots so within a minute."""
        self.check_alone(cpus=2, accelerator="tcg,thread=multi,tb-size=16")


class Deaths(EndCase):
    """One guest that outlives many of us."""

    def test_the_guest_goes_on_whenever_ringside_dies(self):
        for image, append in zip(ringside.IMAGES, ("", "preempt=full")):
            with self.subTest(image), image_with_programs(image, "gap") as environment, \
                    tempfile.TemporaryDirectory(prefix="ringside-deaths-") as folder:
                events = f"{folder}/events"
                with mock.patch.dict(os.environ, environment), \
                        patient(image, append=append, options=[
                            "-qmp", f"unix:{events},server=on,wait=off"]) as machine, \
                        contextlib.closing(Stops(events)) as stops:
                    self.check_deaths(image, machine, stops)

    def check_deaths(self, image, machine, stops):
        seed = random.randrange(1 << 32)
        chance = random.Random(seed)
        status, _ = machine.port.run(f"{LOAD}; gap 2 </dev/null >/dev/null 2>&1 &")
        self.assertEqual(status, 0)
        calls_before = self.nanoseconds_per_read(machine)
        came, ways = collections.Counter(), collections.Counter()
        gaps, still = [], []
        for n in range(TIMES):
            kind = chance.choices(list(KINDS), KINDS.values())[0]
            moment = chance.choice(MOMENTS)
            by, full = chance.choice(list(WAYS)), chance.choice(list(RECORDS))
            with self.subTest(n, seed=seed, kind=kind, moment=moment, by=by, full=full):
                how = self.die(machine, chance, kind, moment, ["-x", WAYS[by], "-x", RECORDS[full]])
                ways[by] += 1
                ways[full] += 1
                came[f"{moment}: {how}"] += 1
                self.check_alive(machine)
                gaps.append(self.gap(machine))
                still.append(stops.longest())
                self.assertLess(gaps[-1], BOUND)
                self.assertLess(still[-1], BOUND)
                if n % 2 == 0:
                    self.assertEqual((cleaned := clean(machine)).status, 0, cleaned)
                else:
                    self.check_counts(machine, news=True)
        self.assertEqual(machine.port.run("rm /tmp/go; killall gap")[0], 0)
        self.check_well(machine)
        self.assertIn("nothing of an earlier ringside", clean(machine).stderr)
        print(f"{image}: {sum(came.values())} deaths, {dict(sorted(came.items()))}, {dict(sorted(ways.items()))}; the guest felt gaps"
              f" of {1000 * max(gaps):.0f} ms at most, {1000 * sorted(gaps)[len(gaps) // 2]:.0f} ms as a"
              f" rule; it was held for {1000 * max(still):.0f} ms at most; a read takes"
              f" {self.nanoseconds_per_read(machine)} ns, {calls_before} before", file=sys.stderr)

    def die(self, machine, chance, kind, moment, options):
        """Traces the machine and dies; how, in a word."""
        with machine.trace(begin(PROGRAM), ["-q", *options]) as running:
            if moment != "before":
                started(running)
            if moment == "leaving":
                time.sleep(chance.uniform(0.5, 2))
                running.process.send_signal(signal.SIGINT)
            longest = {"before": 2, "placing": 1, "firing": 4, "leaving": 0.5}[moment]
            time.sleep(chance.uniform(0, longest))
            how = {"killed": self.kill, "no memory": self.take_memory,
                   "stopped": self.stop}[kind](machine, chance, running)
            running.process.kill()
            running.process.wait()
            self.assertEqual(ringside.wait_for_end(running.mark), [])
        return how

    def kill(self, _machine, _chance, running):
        return "killed" if running.process.poll() is None else "over before"

    def take_memory(self, _machine, chance, running):
        """From now on it gets little more memory; nothing, or some MiB."""
        try:
            status = pathlib.Path(f"/proc/{running.process.pid}/status").read_text()
            size = int(re.search(r"^VmSize:\s+(\d+) kB", status, re.M)[1]) << 10
            size += chance.choice((0, 1 << 18, 1 << 20, 1 << 22))
            resource.prlimit(running.process.pid, resource.RLIMIT_AS, (size, size))
        except (OSError, TypeError):
            return "over before"
        deadline = time.monotonic() + 3
        while running.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return {None: "killed, content with what it had", 0: "over before"}.get(
            running.process.returncode, "ended without memory")

    def stop(self, machine, chance, running):
        """The guest works while we are stopped; then we are let go on, or killed."""
        if running.process.poll() is not None:
            return "over before"
        running.process.send_signal(signal.SIGSTOP)
        until = time.monotonic() + STOPPED_FOR
        self.check_alive(machine)
        time.sleep(max(until - time.monotonic(), 0))
        if chance.random() < 0.5:
            return "stopped, then killed"
        running.process.send_signal(signal.SIGCONT)
        self.check_alive(machine)
        running.process.send_signal(signal.SIGINT)
        running.process.communicate(timeout=ringside.TIMEOUT)
        return "stopped, then went on" if running.process.returncode >= 0 else "ended by its guardian"

    def check_alive(self, machine):
        """It runs, and makes all calls that it is asked for."""
        status, said = machine.port.run(WORK)
        self.assertEqual(status, 0, said)
        counts = ringside.Outcome(0, said.decode(), "").counts()
        self.assertEqual((counts["getppid"], counts["read"]), (CALLS, CALLS), said)
        self.assertEqual(machine.owner.status(), "running")

    def gap(self, machine):
        """The longest time for which a CPU of the guest stood still, in seconds."""
        status, said = machine.port.run("gap")
        self.assertEqual(status, 0, said)
        return int(re.match(rb"gap (\d+)\n", said)[1]) / 1e9

    def nanoseconds_per_read(self, machine):
        status, said = machine.port.run("workload --reads 20000 --read-size 1 --time")
        self.assertEqual(status, 0, said)
        return ringside.Outcome(0, said.decode(), "").counts()["ns_per_read"]


if __name__ == "__main__":
    unittest.main()
