"""Many guests that the test starts as any operator would, attached to by one ringside at once.

Truth is the workload's own word, each guest's, and the host's clock.
"""

import concurrent.futures
import contextlib
import json
import os
import re
import signal
import time
import unittest

import ringside
from test_attach_qmp import Machine

CLAUSE = 'syscall::read:entry /execname == "workload"/'
BEGIN = 'BEGIN { printf("tracing %s %d\\n", vmname, vmpid); }'
# Small enough for eight at once.
SMALLEST = {"debian-6.1": 128, "debian-6.12": 192}


class Machines:
    """Guests by their names; a context manager."""

    def __init__(self, images, names=None):
        """`images` by the machines' names; `names` are those that QEMU gets instead."""
        self._stack = contextlib.ExitStack()
        self.by_name = {
            name: Machine(image, memory=SMALLEST[image],
                          options=["-name", (names or {}).get(name, name),
                                   "-action", "reboot=reset"])
            for name, image in images.items()}

    def __enter__(self):
        self._for_each(lambda machine: self._stack.enter_context(machine), self.by_name)
        return self

    def __exit__(self, *unused):
        self._stack.close()

    def __getitem__(self, name):
        return self.by_name[name]

    def _for_each(self, action, names):
        """At the same time; the outcomes by name."""
        with concurrent.futures.ThreadPoolExecutor(len(self.by_name)) as pool:
            started = {name: pool.submit(action, self.by_name[name]) for name in names}
            return {name: one.result() for name, one in started.items()}

    def read(self, reads):
        """Runs workloads at the same time, by name with how many reads; what they say they did."""
        def run(name):
            status, said = self.by_name[name].port.run(f"workload --reads {reads[name]}")
            assert status == 0, said
            return ringside.Outcome(0, said.decode(), "").counts()["read"]
        with concurrent.futures.ThreadPoolExecutor(len(self.by_name)) as pool:
            return dict(zip(reads, pool.map(run, reads)))

    def _targets(self):
        return [word for machine in self.by_name.values()
                for word in ("--attach", f"qmp:{machine.path}")]

    def run(self, *options):
        """A ringside with all of them, to its end."""
        return ringside.run(machine=False, options=[*self._targets(), *options])

    def trace(self, program, *options):
        """A ringside that traces all of them, in the background."""
        return ringside.Run(f"{BEGIN} {program}", machine=False,
                            options=[*self._targets(), "-q", *options])

    def processes(self, running):
        """Waits until tracing has begun; the processes that run the machines, by name."""
        text = running.read_until(lambda text: text.count("tracing ") == len(self.by_name))
        return {name: int(pid) for name, pid in re.findall(r"^tracing (\S+) (\d+)$", text,
                                                           re.MULTILINE)}


def end(running):
    """Ctrl-C, and what came of it."""
    running.process.send_signal(signal.SIGINT)
    return running.finish()


class Eight(unittest.TestCase):
    """One vCPU each, six with Linux 6.1 and two with 6.12."""

    def test_counts_are_exact_on_each_of_eight(self):
        names = [f"vm{number}" for number in range(8)]
        images = {name: "debian-6.12" if name in names[6:] else "debian-6.1" for name in names}
        program = (f"BEGIN {{ reads = 0; }} {CLAUSE} {{ reads++; each[vmid]++; self->own++;"
                   " @[vmname] = count(); @all[\"all\"] = count(); }"
                   " syscall::exit_group:entry /self->own/"
                   ' { printf("thread of %s %d\\n", vmname, self->own); }'
                   " vm6:fbt:vmlinux:vfs_read:entry /execname == \"workload\"/"
                   " { @one[\"here alone\"] = count(); }"
                   ' END { printf("machine %s %d of %d\\n", vmname, each[vmid], reads); }')
        with Machines(images) as machines, machines.trace(program, "-x", "aggmerge") as running:
            processes = machines.processes(running)
            did = machines.read({name: 500 + 10 * number for number, name in enumerate(names)})
            outcome = end(running)

        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(len(set(processes.values())), 8)
        together = sum(did.values())
        counts = outcome.counts()
        self.assertEqual({name: counts.get(name) for name in names}, did, outcome)
        self.assertEqual(counts["all"], together, outcome)
        self.assertEqual(counts["here alone"], did["vm6"], outcome)
        for name in names:
            self.assertEqual(counts[f"thread of {name}"], did[name], outcome)
            self.assertEqual(counts[f"machine {name} {did[name]} of"], together, outcome)


class Fates(unittest.TestCase):
    """One machine's fate is not the others' business."""

    def test_machines_that_end_pause_or_reboot_stop_no_other(self):
        names = ("quits", "killed", "resets", "pauses", "well")
        program = f'{CLAUSE} {{ @[vmname] = count(); }} END {{ printf("end %s\\n", vmname); }}'
        with Machines(dict.fromkeys(names, "debian-6.1")) as machines:
            with machines.trace(program) as running:
                processes = machines.processes(running)
                did = machines.read({name: 200 + 10 * n for n, name in enumerate(names)})
                machines["pauses"].owner.ask("stop")
                paused = time.monotonic()
                machines["quits"].owner.ask("quit")
                os.kill(processes["killed"], signal.SIGKILL)
                machines["resets"].owner.ask("system_reset")
                running.read_until(lambda text: text.count("\nend ") == 3)
                more = machines.read({"well": 300})
                # Longer than any delay that a clock would take for one.
                time.sleep(max(0, paused + 6 - time.monotonic()))
                machines["pauses"].owner.ask("cont")
                more |= machines.read({"pauses": 400})
                more["well"] += machines.read({"well": 500})["well"]
                outcome = end(running)

        self.assertEqual(outcome.status, 1, outcome)
        self.assertEqual(outcome.counts(),
                         {name: did[name] + more.get(name, 0) for name in names}, outcome)
        self.assertEqual(sorted(outcome.stderr.splitlines()), sorted([
            "ringside: pauses: its owner has paused it: tracing waits",
            "ringside: pauses: it runs again",
            "ringside: quits: tracing ended: its owner ended it (host-qmp-quit)",
            "ringside: killed: tracing ended: its QEMU has ended",
            "ringside: resets: tracing ended: the guest rebooted"]), outcome)


class Clean(unittest.TestCase):
    """`ringside clean` with several targets."""

    def test_each_is_cleaned_whatever_is_wrong_with_another(self):
        with Machine(options=["-name", "web"]) as machine:
            outcome = ringside.run(machine=False,
                                   verb=("clean", "qmp:/nowhere", f"qmp:{machine.path}"))
        self.assertEqual((outcome.status, outcome.stderr.splitlines()),
                         (1, ["ringside: qmp:/nowhere: there is no QMP socket /nowhere: No such file"
                              " or directory; QEMU makes one by -qmp unix:PATH,server=on,wait=off",
                              "ringside: web: nothing of an earlier ringside is in the guest"]),
                         outcome)


class Names(unittest.TestCase):
    """Whose is what: names, columns, and what an action does in the guest that fired."""

    def test_a_machine_that_is_named_twice_is_not_touched(self):
        with Machine() as machine:
            first = f"qmp:{machine.path}"
            for second in (f"pid:{machine.pid}", f"qmp:{machine.folder / 'owner'}"):
                outcome = ringside.run("BEGIN { exit(0); }", machine=False,
                                       options=["--attach", first, "--attach", second])
                self.assertEqual((outcome.status, outcome.stderr),
                                 (1, f"ringside: '{first}' and '{second}' are the same machine, process"
                                     f" {machine.pid}: name each machine once\n"), outcome)

    def test_two_of_one_name_are_told_apart(self):
        program = ('syscall::getppid:entry /execname == "workload"/ { printf("at %s\\n", vmname); }'
                   ' web-2:syscall::getppid:entry /execname == "workload"/ { @ = count(); }')
        with Machines({"web": "debian-6.1", "other": "debian-6.12"},
                      names={"other": "web"}) as machines:
            with machines.trace(program) as running:
                processes = machines.processes(running)
                self.assertEqual(set(processes), {"web", "web-2"})
                for name in ("web", "other"):
                    self.assertEqual(machines[name].port.run("workload --getppid 2")[0], 0)
                outcome = end(running)
            listed = machines.run("-l", "-n", "*-2:syscall::getppid:entry")
            records = machines.run("-O", "jsonl", "-n", "BEGIN { trace(vmid); exit(0); }")
            nowhere = machines.run("-n", "db*:syscall::getppid:entry")
            refused = [machines.run(*options) for options in (
                ("-x", "channel=exit", "-n", "BEGIN { exit(0); }"),
                ("-x", "cpu=1", "-n", "BEGIN { exit(0); }"),
                ("-w", "-n", "web-2:syscall::getppid:entry { stop(); }"))]

        self.assertEqual(re.findall("^at (.*)$", outcome.stdout, re.MULTILINE),
                         ["web", "web", "web-2", "web-2"], outcome)
        self.assertEqual([line.split()[0] for line in listed.stdout.splitlines()],
                         ["MACHINE", "web-2"], listed)
        self.assertEqual({record["machine"]: record["output"][0]["value"]
                          for record in map(json.loads, records.stdout.splitlines())
                          if record["name"] == "BEGIN"}, {"web": 0, "web-2": 1}, records)
        self.assertEqual((nowhere.status, nowhere.stdout), (1, ""), nowhere)
        self.assertIn("there is no machine db*; there are web and web-2", nowhere.stderr)
        self.assertEqual([(each.status, each.stdout) for each in refused], [(1, "")] * 3)
        channel, cpu, stop = (each.stderr.splitlines()[-1] for each in refused)
        self.assertRegex(channel, r"^ringside: web: this machine's vCPUs run in another process")
        self.assertRegex(cpu, r"^ringside: web: could not enable tracing: there is no CPU 1")
        self.assertRegex(stop, r"^ringside: web-2: could not enable tracing: signals to the guest")


class OneClock(unittest.TestCase):
    """Time is the host's on every machine."""

    ROUNDS = 6

    def test_firings_come_in_the_order_of_what_caused_them(self):
        program = ('syscall::getppid:entry /execname == "workload"/'
                   ' { printf("at %s %d\\n", vmname, timestamp); }')
        triggers = []  # (machine, nanoseconds before, after)
        with Machines({"one": "debian-6.1", "two": "debian-6.12"}) as machines:
            def trigger(name):
                before = time.monotonic_ns()
                self.assertEqual(machines[name].port.run("workload --getppid 1")[0], 0)
                triggers.append((name, before, time.monotonic_ns()))

            with machines.trace(program, "-v") as running:
                machines.processes(running)
                for pause in (0, 1, 7):  # less and more than any trap is late
                    machines["one"].owner.ask("stop")
                    trigger("two")
                    time.sleep(pause)
                    trigger("two")
                    machines["one"].owner.ask("cont")
                    for _ in range(self.ROUNDS):
                        trigger("one")
                        trigger("two")
                outcome = end(running)

        self.assertEqual(outcome.status, 0, outcome)
        fired = [(name, int(at)) for name, at in re.findall(r"^at (\w+) (\d+)$", outcome.stdout,
                                                            re.MULTILINE)]
        self.assertEqual([name for name, _ in fired], [name for name, _, _ in triggers], outcome)
        times = [at for _, at in fired]
        self.assertEqual(times, sorted(times), outcome)
        late = {name: float(us) * 1e3 for name, us in re.findall(
            r"^ringside: (\w+): timestamps are at most ([\d.]+) us late", outcome.stderr,
            re.MULTILINE)}
        self.assertEqual(set(late), {"one", "two"}, outcome)
        self.assertNotIn("set its clock", outcome.stderr)
        self.check_intervals(fired, triggers, max(late.values()))

    def check_intervals(self, fired, triggers, late):
        """Each is right to the time that a trigger takes and what is said of the error."""
        # The clock's line begins at another moment than ours, and has a rate that was measured in
        # milliseconds.
        first, (_, before, after) = fired[0][1], triggers[0]
        for (_, at), (_, from_, to) in zip(fired[1:], triggers[1:]):
            slack = late + 1e-3 * (to - before)
            self.assertGreaterEqual(at - first, from_ - after - slack)
            self.assertLessEqual(at - first, to - before + slack)


if __name__ == "__main__":
    unittest.main()
