"""Guests that the test starts as any operator would, attached to by their QEMU's QMP socket.

Their owner's commands meanwhile come over a second QMP socket. Truth is the workload's own word,
and what QEMU says of its guest.
"""

import contextlib
import os
import pathlib
import re
import signal
import tempfile
import time
import unittest

import guest
import ringside
from patient import why
from qmp import Qmp
from test_take_over import LEFT

READS = 3000
COUNT = 'syscall::read:entry /execname == "workload"/ { @["reads"] = count(); }'
OPENED = ('syscall::openat:entry /execname == "workload"/ { @[copyinstr(arg1)] = count(); }')
GIB = 1 << 30


class Owner(Qmp):
    """The monitor that the machine's owner uses."""

    def wait_until(self, done):
        """Waits until that is true of the machine."""
        deadline = time.monotonic() + guest.TIMEOUT
        while not done():
            if time.monotonic() > deadline:
                raise AssertionError("the guest does not do what its owner asks for")
            time.sleep(0.1)

    def chardevs(self):
        """The labels of the machine's character devices, without those QEMU numbers itself."""
        return {each["label"] for each in self.ask("query-chardev")
                if not each["label"].startswith("#")}


class Machine:
    """A guest with two QMP sockets: one for us, one for its owner."""

    def __init__(self, image="debian-6.1", cpus=1, memory=512, options=(), **settings):
        self._stack = contextlib.ExitStack()
        folder = pathlib.Path(self._stack.enter_context(
            tempfile.TemporaryDirectory(prefix="ringside-owner-")))
        self.path = folder / "qmp"
        sockets = []
        for name in ("qmp", "owner"):
            sockets += ["-qmp", f"unix:{folder / name},server=on,wait=off"]
        self._guest = guest.Guest(image, cpus, memory, [*sockets, *options], **settings)
        self.folder = folder

    def __enter__(self):
        self.port = self._stack.enter_context(self._guest)
        self.owner = Owner(self.folder / "owner")
        self._stack.callback(self.owner.close)
        self.chardevs = self.owner.chardevs()
        return self

    def __exit__(self, *unused):
        self._stack.close()

    @property
    def pid(self):
        """Of the QEMU that runs it."""
        return self._guest.pid()

    def await_end(self):
        """Waits until its QEMU has ended by itself."""
        self._guest.await_end()

    def trace(self, program, options=()):
        """A ringside that traces it, in the background."""
        return ringside.Run(program, machine=False,
                            options=["--attach", f"qmp:{self.path}", *options])

    def run(self, program, options=()):
        """The outcome of a ringside that ends by itself."""
        with self.trace(program, options) as running:
            return running.finish()


def memfd(mib):
    """RAM that QEMU shares."""
    return ["-object", f"memory-backend-memfd,id=mem,size={mib}M,share=on",
            "-machine", "pc,memory-backend=mem"]


def started(running):
    """Waits until tracing has begun: the program's BEGIN has printed."""
    running.read_until(lambda text: "tracing\n" in text)


def begin(program):
    """The program, which says when it traces."""
    return 'BEGIN { printf("tracing\\n"); } ' + program


def check_a_pause(case, trace, port, pause, go_on):
    """A pause by the owner is told, and its end, and counts are exact afterwards."""
    with trace as running:
        started(running)
        pause()
        time.sleep(1.5)  # a look at what there is, at switchrate
        go_on()
        status, said = port.run(f"workload --reads {READS}")
        outcome = end(running)
    case.assertEqual((status, outcome.status), (0, 0), outcome)
    case.assertEqual(outcome.counts()["reads"], ringside.Outcome(0, said.decode(), "").counts()["read"])
    case.assertEqual(outcome.stderr.splitlines(),
                     ["ringside: its owner has paused it: tracing waits", "ringside: it runs again"])


def end(running):
    """Ctrl-C, and what came of it."""
    running.process.send_signal(signal.SIGINT)
    return running.finish()


class Case(unittest.TestCase):
    """The checks that the tests have in common."""

    def check_left_alone(self, machine, status="running"):
        """As it was found: it runs or does not, and nothing of ours is plugged into it."""
        self.assertEqual(machine.owner.status(), status)
        self.assertEqual(machine.owner.chardevs(), machine.chardevs)

    def check_counts(self, machine, *, news=False):
        """Counts of a workload are exact, and there is no news, unless there may be."""
        with machine.trace(begin(f"{COUNT} {OPENED}"), ["-q"]) as running:
            started(running)
            status, said = machine.port.run(f"workload --reads {READS}")
            outcome = end(running)
        self.assertEqual((status, outcome.status), (0, 0), outcome)
        if not news:
            self.assertEqual(outcome.stderr, "")
        truth = ringside.Outcome(0, said.decode(), "").counts()
        counts = outcome.counts()
        self.assertEqual(counts.pop("reads"), truth["read"], outcome)
        self.assertEqual(sum(counts.values()), truth["openat"], outcome)
        self.check_left_alone(machine)


class Debug(Case):
    """The figures of an attach that -x debug tells."""

    def test_how_long_the_guest_stood_still(self):
        """Once armed, and once left; the second takes the first in."""
        with Machine() as machine:
            with machine.trace(begin("fbt::vfs_read:entry { }"), ["-q", "-x", "debug"]) as running:
                started(running)
                outcome = end(running)
            self.assertEqual(outcome.status, 0, outcome)
            told = re.findall(r"^ringside: the guest stood still (\d+) times, for ([\d.]+) ms in all, "
                              r"for ([\d.]+) ms at the longest$", outcome.stderr, re.M)
            self.assertEqual(len(told), 2, outcome)
            (armed, left) = [(int(count), float(total), float(longest))
                             for count, total, longest in told]
            self.assertGreaterEqual(armed[0], 2, outcome)  # for the stub, and for the probe
            self.assertGreater(left[0], armed[0], outcome)
            for count, total, longest in (armed, left):
                self.assertLessEqual(longest, total, outcome)
                self.assertLessEqual(total, count * longest + 0.1, outcome)
            self.check_left_alone(machine)


class Again(Case):
    """One trace after another: what a translator has seen of the one is not run in the next."""

    def check_one(self, machine, probe, command, name):
        """The probe's count is what the workload says of its calls of `name`."""
        with machine.trace(begin(f'{probe} /execname == "workload"/ {{ @["n"] = count(); }}'),
                           ["-q"]) as running:
            started(running)
            status, said = machine.port.run(command)
            outcome = end(running)
        self.assertEqual((status, outcome.status), (0, 0), (said, outcome))
        truth = ringside.Outcome(0, said.decode(), "").counts()
        self.assertEqual(outcome.counts()["n"], truth[name], outcome)

    def test_probes_that_the_last_trace_had_not(self):
        probes = [("fbt::__x64_sys_openat:entry", "workload --opens 20", "openat"),
                  ("fbt::__x64_sys_getppid:entry", "workload --getppid 30", "getppid"),
                  ("fbt::vfs_read:entry", "workload --reads 40", "read"),
                  ("syscall::getppid:return", "workload --getppid 50", "getppid"),
                  ("fbt::__x64_sys_lseek:entry", "workload --reads 60", "lseek")]
        for image, cpus in (("debian-6.1", 1), ("debian-6.12", 2)):
            with self.subTest(image), Machine(image, cpus) as machine:
                for probe, command, name in probes:
                    self.check_one(machine, probe, command, name)
                # One that is killed leaves its code to who cleans it up.
                with machine.trace(begin("fbt::do_filp_open:entry, fbt::vfs_open:entry { @ = count(); }"),
                                   ["-q"]) as running:
                    started(running)
                    self.assertEqual(machine.port.run("workload --opens 9")[0], 0)
                    running.process.kill()
                for probe, command, name in reversed(probes):
                    self.check_one(machine, probe, command, name)


class Processors(Case):
    """CPUs that there were not when tracing began."""

    def test_counts_are_exact_on_a_cpu_that_is_plugged_in(self):
        """On 6.1: 6.12 sees nothing of it, also when nobody traces."""
        with Machine("debian-6.1", options=["-smp", "1,maxcpus=2,sockets=2"]) as machine:
            with machine.trace(begin(COUNT.replace('"reads"', "cpu")), ["-q"]) as running:
                started(running)
                machine.owner.ask("device_add", driver="max-x86_64-cpu", id="second", cx16=False,
                                  **{"socket-id": 1, "core-id": 0, "thread-id": 0})
                status, said = machine.port.run(
                    "for n in $(seq 100); do [ -e /sys/devices/system/cpu/cpu1 ] && break; sleep 0.2; done;"
                    " echo 1 >/sys/devices/system/cpu/cpu1/online &&"
                    f" taskset 2 workload --reads {READS}")
                outcome = end(running)
            self.assertEqual((status, outcome.status, outcome.stderr), (0, 0, ""), (said, outcome))
            truth = ringside.Outcome(0, said.decode(), "").counts()
            self.assertEqual(outcome.counts(), {"1": truth["read"]}, outcome)
            self.check_counts(machine)

    def test_one_that_linux_has_not_started_beside_an_empty_slot(self):
        """QEMU numbers vCPUs by their slots: here there are 0, 1 and 3."""
        with Machine("debian-6.12", options=["-smp", "2,maxcpus=4"]) as machine:
            machine.owner.ask("device_add", driver="max-x86_64-cpu", id="fourth", cx16=False,
                              **{"socket-id": 0, "core-id": 3, "thread-id": 0})
            text, tree = why(f"qmp:{machine.path}")
            self.assertEqual((tree["not_known"], len(tree["vcpus"])), ([], 3), text)
            self.check_counts(machine)
            sampled = machine.run("profile-97 { @[cpu] = count(); n++; } profile-97 /n > 100/ { exit(0); }",
                                  ["-q"])
            self.assertEqual((sampled.status, set(sampled.counts())), (0, {"0", "1"}), sampled)
            with machine.trace(begin("fbt::vfs_*:entry { @ = count(); }"), ["-q"]) as running:
                started(running)
                running.process.kill()
                running.process.wait()
                ringside.wait_for_end(running.mark)
            cleaned = ringside.run(machine=False, verb=["clean", f"qmp:{machine.path}"])
            self.assertEqual(cleaned.status, 0, cleaned)
            self.assertRegex(cleaned.stderr, LEFT)
            self.check_left_alone(machine)


class Memory(Case):
    """RAM of every kind."""

    def test_counts_are_exact_wherever_ram_lies(self):
        with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="owners-ram-") as ram:
            kinds = {
                "private": ("debian-6.1", 1, 512, []),
                "memfd": ("debian-6.12", 2, 512, memfd(512)),
                "file, q35": ("debian-6.12", 1, 512, [
                    "-object", f"memory-backend-file,id=mem,size=512M,mem-path={ram.name},share=on",
                    "-machine", "q35,memory-backend=mem"]),
                "above 4 GiB": ("debian-6.1", 2, 6144, []),
                "two nodes": ("debian-6.12", 2, 512, [
                    "-object", "memory-backend-ram,id=m0,size=256M",
                    "-object", "memory-backend-memfd,id=m1,size=256M,share=on",
                    "-numa", "node,memdev=m0,cpus=0", "-numa", "node,memdev=m1,cpus=1"]),
            }
            for kind, (image, cpus, memory, options) in kinds.items():
                with self.subTest(kind), Machine(image, cpus, memory, options) as machine:
                    self.check_counts(machine)
                    self.check_counts(machine)  # and again

    def test_memory_that_is_plugged_in_while_we_trace(self):
        options = ["-m", "512,slots=2,maxmem=2G"]
        with Machine("debian-6.12", 1, 512, options) as machine:
            with machine.trace(begin(f"{COUNT} {OPENED}"), ["-q"]) as running:
                started(running)
                machine.owner.ask("object-add", **{"qom-type": "memory-backend-ram", "id": "more",
                                                   "size": GIB})
                machine.owner.ask("device_add", driver="pc-dimm", id="dimm", memdev="more")
                # The kernel takes it before what it had, which lies below 4 GiB.
                status, said = machine.port.run(
                    "for i in 1 2 3 4 5 6 7 8 9; do grep -lq offline "
                    "/sys/devices/system/memory/memory*/state && break; sleep 1; done; "
                    "for b in /sys/devices/system/memory/memory*/state; do "
                    "echo online_kernel > $b 2>/dev/null; done; "
                    f"grep -i memtotal /proc/meminfo; workload --reads {READS}")
                outcome = end(running)
        self.assertEqual((status, outcome.status), (0, 0), outcome)
        text = said.decode()
        self.assertGreater(int(re.search(r"MemTotal: +(\d+)", text)[1]) << 10, GIB, text)
        truth = ringside.Outcome(0, text, "").counts()
        counts = outcome.counts()
        self.assertEqual(outcome.stderr, "")
        self.assertEqual(counts.pop("reads"), truth["read"], outcome)
        self.assertEqual(sum(counts.values()), truth["openat"], outcome)


    def test_memory_that_a_balloon_takes_and_gives_back(self):
        load = "for module in $(cat /modules/balloon); do insmod /modules/$module 2>/dev/null; done"
        for image, options in (("debian-6.1", []), ("debian-6.12", memfd(512))):
            options = ["-device", "virtio-balloon-pci,id=balloon", *options]
            with self.subTest(image), Machine(image, 2, 512, options) as machine:
                self.assertEqual(machine.port.run(f"{load}; grep -q virtio_balloon /proc/modules")[0], 0)
                with machine.trace(begin(f"{COUNT} {OPENED}"), ["-q"]) as running:
                    started(running)
                    reads = 0
                    for mib in (320, 512):
                        machine.owner.ask("balloon", value=mib << 20)
                        machine.owner.wait_until(
                            lambda mib=mib: machine.owner.ask("query-balloon")["actual"] == mib << 20)
                        status, said = machine.port.run(f"workload --reads {READS}")
                        self.assertEqual(status, 0, said)
                        reads += ringside.Outcome(0, said.decode(), "").counts()["read"]
                    outcome = end(running)
                self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
                self.assertEqual(outcome.counts()["reads"], reads, outcome)
                self.check_counts(machine)

    def test_memory_that_is_unplugged_while_we_trace(self):
        options = ["-m", "512,slots=2,maxmem=2G", "-object", "memory-backend-memfd,id=more,size=1G,share=on"]
        movable = "memhp_default_state=online_movable"
        with Machine("debian-6.12", 2, 512, options, append=movable) as machine:
            machine.owner.ask("device_add", driver="pc-dimm", id="dimm", memdev="more")
            status, said = machine.port.run("until [ $(awk '/MemTotal/ { print $2 }' /proc/meminfo) -gt 1000000 ];"
                                            " do sleep 0.1; done")
            self.assertEqual(status, 0, said)
            with machine.trace(begin(f"{COUNT} {OPENED}"), ["-q"]) as running:
                started(running)
                machine.owner.ask("device_del", id="dimm")
                machine.owner.wait_until(
                    lambda: not machine.owner.ask("query-memory-devices"))
                machine.owner.ask("object-del", id="more")
                status, said = machine.port.run(f"workload --reads {READS}")
                outcome = end(running)
            self.assertEqual((status, outcome.status, outcome.stderr), (0, 0, ""), outcome)
            truth = ringside.Outcome(0, said.decode(), "").counts()
            self.assertEqual(outcome.counts()["reads"], truth["read"], outcome)
            self.check_counts(machine)


class Owners(Case):
    """The machine's owner acts while we are in it."""

    def test_a_machine_that_was_paused_stays_so(self):
        with Machine() as machine:
            machine.owner.ask("stop")
            outcome = ringside.run("BEGIN { exit(0); } fbt::vfs_read:entry { @ = count(); }",
                                   machine=False, options=["--attach", f"qmp:{machine.path}"])
            self.assertEqual(outcome.status, 0, outcome)
            self.assertEqual(outcome.stderr.splitlines()[0],
                             "ringside: its owner has paused it: tracing waits", outcome)
            self.check_left_alone(machine, "paused")
            machine.owner.ask("cont")
            # Where it was paused, it may not be known that nobody is in the stub.
            self.check_counts(machine, news="the stub stays" in outcome.stderr)

    def test_pauses_and_ends_of_tracing_leave_a_machine_that_goes_on(self):
        with Machine(cpus=2) as machine:
            check_a_pause(self, machine.trace(begin(COUNT), ["-q"]), machine.port,
                          pause=lambda: machine.owner.ask("stop"), go_on=lambda: machine.owner.ask("cont"))
            self.check_left_alone(machine)

    def test_ends_of_the_machine(self):
        ends = {"system_reset": "the guest rebooted",
                "quit": "its owner ended it (host-qmp-quit)"}
        for command, words in ends.items():
            with self.subTest(command), Machine(options=["-action", "reboot=reset"]) as machine:
                with machine.trace(begin(COUNT), ["-q"]) as running:
                    started(running)
                    machine.owner.ask(command)
                    outcome = running.finish()
                self.assertEqual(outcome.status, 1, outcome)
                self.assertEqual(outcome.stderr.splitlines()[-1],
                                 f"ringside: tracing ended: {words}", outcome)

    def test_a_gdbserver_that_is_taken_from_us_is_told_with_what_stays(self):
        with Machine() as machine:
            with machine.trace(begin("fbt::vfs_*:entry { @ = count(); }"), ["-q"]) as running:
                started(running)
                machine.owner.ask("human-monitor-command",
                                  **{"command-line": f"gdbserver unix:{machine.folder}/gdb,server=on,wait=off"})
                outcome = end(running)
            machine.owner.ask("human-monitor-command", **{"command-line": "gdbserver none"})
            cleaned = ringside.run(machine=False, verb=["clean", f"qmp:{machine.path}"])

            self.assertEqual(outcome.status, 1, outcome)
            stayed = re.search(r"(\d+) probes stay in the guest as breakpoints, and the stub.*`ringside clean`",
                               outcome.stderr)
            self.assertTrue(stayed, outcome)
            self.assertEqual(cleaned.status, 0, cleaned)
            self.assertIn(f"{stayed[1]} breakpoints and", cleaned.stderr)
            self.check_counts(machine)

    def test_a_machine_that_is_saved_is_left_first(self):
        with Machine() as machine, tempfile.NamedTemporaryFile() as saved:
            machine.owner.ask("migrate-set-capabilities",
                              capabilities=[{"capability": "events", "state": True}])
            # Slow enough that there is a way out of it.
            machine.owner.ask("migrate-set-parameters", **{"max-bandwidth": 4 << 20})
            with machine.trace(begin(COUNT), ["-q"]) as running:
                started(running)
                machine.owner.ask("migrate", uri=f"exec:cat > {saved.name}")
                outcome = running.finish()
            self.assertEqual(outcome.stderr.splitlines()[-1],
                             "ringside: tracing ended: its owner saves it, or moves it to another host",
                             outcome)
            self.check_left_alone(machine)
            machine.owner.ask("migrate_cancel")
            status, _ = machine.port.run("workload --reads 10")
            self.assertEqual(status, 0)

    def test_a_guest_that_is_saved_with_our_breakpoints_goes_on_elsewhere(self):
        with tempfile.NamedTemporaryFile() as saved:
            with Machine("debian-6.12", cpus=2) as machine:
                with machine.trace(begin("fbt::vfs_*:entry { @ = count(); }")) as running:
                    started(running)
                    self.assertEqual(machine.port.run("workload --reads 100")[0], 0)
                    running.process.kill()
                machine.owner.ask("stop")
                machine.owner.ask("migrate", uri=f"exec:cat > {saved.name}")
                while (state := machine.owner.ask("query-migrate").get("status")) != "completed":
                    self.assertNotEqual(state, "failed")
                    time.sleep(0.1)
            options = ["-incoming", f"exec:cat {saved.name}"]
            with Machine("debian-6.12", cpus=2, options=options, boots=False) as machine:
                while machine.owner.status() in ("inmigrate", "restore-vm"):
                    time.sleep(0.1)
                machine.owner.ask("cont")
                status, said = machine.port.run(f"workload --reads {READS}")
                self.assertEqual(status, 0)
                self.assertIn(f"read {READS}\n", said.decode())

    def test_a_killed_ringside_leaves_a_machine_that_runs(self):
        with Machine(cpus=2) as machine:
            status = set()
            for hundredths in range(0, 60, 6):
                with machine.trace(begin("fbt:::entry { @ = count(); }")) as running:
                    time.sleep(hundredths / 100)
                    # Wherever it is: it stops the machine several times on its way.
                    running.process.kill()
                    running.process.wait()
                    ringside.wait_for_end(running.mark)
                status.add(machine.owner.status())
                self.assertEqual(machine.port.run("workload --reads 10")[0], 0)
            self.assertEqual(status, {"running"})
            # There may be news of what was left in the guest.
            self.check_counts(machine, news=True)


class Refusals(Case):
    """One line, before anything is touched."""

    def refusal(self, path):
        """The line about a socket that cannot be attached to."""
        outcome = ringside.run("BEGIN { exit(0); }", machine=False, options=["--attach", f"qmp:{path}"])
        self.assertEqual((outcome.status, outcome.stdout), (1, ""), outcome)
        lines = outcome.stderr.splitlines()
        self.assertEqual(len(lines), 1, outcome)
        return lines[0]

    def test_no_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("No such file", self.refusal(f"{folder}/none"))

    def test_a_human_monitor(self):
        with tempfile.TemporaryDirectory() as folder:
            with guest.bare_qemu(f"{folder}/qmp", "-monitor", f"unix:{folder}/hmp,server=on,wait=off"):
                self.assertIn("is no QMP socket", self.refusal(f"{folder}/hmp"))

    def test_what_waits_for_a_guest(self):
        with tempfile.TemporaryDirectory() as folder:
            with guest.bare_qemu(f"{folder}/qmp", "-incoming", "defer"):
                self.assertIn("it waits for a guest that comes from another host",
                              self.refusal(f"{folder}/qmp"))
            with guest.bare_qemu(f"{folder}/qmp", "-S"):
                self.assertIn("its guest has not been started", self.refusal(f"{folder}/qmp"))

    def test_a_gdbserver_of_the_owners_is_left_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            with guest.bare_qemu(f"{folder}/qmp", "-gdb", f"unix:{folder}/gdb,server=on,wait=off"):
                self.assertIn("its gdbserver is its owner's", self.refusal(f"{folder}/qmp"))
            own = f"socket,id=own,path={folder}/own,server=on,wait=off"
            with guest.bare_qemu(f"{folder}/qmp", "-chardev", own, "-gdb", "chardev:own"):
                self.assertIn("its gdbserver is its owner's (-gdb chardev:own)",
                              self.refusal(f"{folder}/qmp"))

    def test_a_qemu_that_is_stopped_is_not_waited_for(self):
        with tempfile.TemporaryDirectory() as folder, guest.bare_qemu(f"{folder}/qmp") as process:
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            why = f"process {process.pid} is stopped by a signal: 'kill -CONT {process.pid}' lets it go on"
            self.assertEqual(self.refusal(f"{folder}/qmp"), f"ringside: {why}")
            process.send_signal(signal.SIGCONT)
            self.assertEqual(ringside.run("BEGIN { exit(0); }", machine=False,
                                          options=["--attach", f"qmp:{folder}/qmp"]).status, 0)

    def test_a_second_ringside_is_told_of_the_first(self):
        with Machine() as machine, machine.trace(begin(COUNT)) as running:
            started(running)
            line = self.refusal(machine.path)
            self.assertIn(f"process {running.process.pid} (ringside)", line)
            self.assertEqual(end(running).status, 0)


if __name__ == "__main__":
    unittest.main()
