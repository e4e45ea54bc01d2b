"""A trace of a machine that someone else started ends at the worst moment: its owner moves it, resets
it or ends it, its guest starts another kernel. The guest goes on, nothing of ours is written
where it does not belong, and the next ringside finds a guest like any other.
"""

import os
import pathlib
import pty
import shlex
import signal
import tempfile
import time
import unittest
from unittest import mock

import guest
import ringside
from made_images import image_with_another_kernel
from patient import why
from qmp import QmpError
from test_attach_qmp import Case, Machine, READS, begin, started
from test_kexec import START
from test_storm import TROUBLE
from test_take_over import LEFT

# About as many as fit into the first megabyte.
ALL = "fbt::[a-k]*:entry { @ = count(); }"
# With so many probes a guest still starts another kernel in good time, on a host that is busy.
SOME = "fbt::vfs_*:, fbt::*kexec*:, syscall::: { @ = count(); }"
# Keeps a guest busy from now on; nothing of it is a "workload".
LOAD = ("touch /tmp/go; for n in 1 2; do (while [ -e /tmp/go ]; do dd if=/dev/zero of=/tmp/file$n bs=512"
        " count=200; cat /proc/*/stat; done) </dev/null >/dev/null 2>&1 & done")
MOVED = "its owner saves it, or moves it to another host"
ANOTHER = START.replace("nokaslr", "")
STARTED_ANOTHER = "tracing ended: the guest has started another kernel (kexec), which is not traced"
GONE = "its owner has saved it, or moved it to another host; breakpoints of ours went along"


def clean(machine):
    """`ringside clean`: its status and what it says."""
    return ringside.run(machine=False, verb=["clean", f"qmp:{machine.path}"])


def patient(image="debian-6.1", **settings):
    """A machine whose kernel does not complain of a host that lets it wait."""
    append = f'{guest.PATIENT} {settings.pop("append", "")}'
    return Machine(image, cpus=2, append=append, **settings)


class EndCase(Case):
    """The checks that the tests have in common."""

    def check_well(self, machine):
        """It works, its kernel has complained of nothing, and a trace sees all of it."""
        status, said = machine.port.run("workload --reads 100; dmesg | tail -c 6000")
        self.assertEqual(status, 0)
        self.assertIsNone(TROUBLE.search(said.decode(errors="replace")), said)
        self.check_counts(machine, news=True)


class Moves(EndCase):
    """Migrations of an owner who has not asked QEMU for events."""

    def await_migration(self, machine, state):
        """Waits until its migration has come so far."""
        while (now := machine.owner.ask("query-migrate").get("status")) != state:
            self.assertNotIn(now, ("failed", "cancelled"))
            time.sleep(0.05)

    def test_a_machine_that_begins_to_move_is_left(self):
        with patient() as machine, tempfile.NamedTemporaryFile() as saved:
            machine.owner.ask("migrate-set-parameters", **{"max-bandwidth": 4 << 20})
            with machine.trace(begin(ALL), ["-q"]) as running:
                started(running)
                machine.owner.ask("migrate", uri=f"exec:cat > {saved.name}")
                outcome = running.finish()
            self.assertEqual(outcome.stderr.splitlines()[-1],
                             f"ringside: tracing ended: {MOVED}", outcome)
            refused = ringside.run("BEGIN { exit(0); }", machine=False,
                                   options=["--attach", f"qmp:{machine.path}"])
            self.assertIn(f"{MOVED}: attach when that is over", refused.stderr)
            machine.owner.ask("migrate_cancel")
            while machine.owner.ask("query-migrate")["status"] == "cancelling":
                time.sleep(0.05)
            self.assertIn("nothing of an earlier ringside", clean(machine).stderr)
            self.check_well(machine)

    def test_a_guest_that_moved_too_fast_is_cleaned_where_it_arrives(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                self.check_fast_move(image)

    def check_fast_move(self, image):
        with tempfile.TemporaryDirectory() as folder:
            where = f"unix:{folder}/way"
            with patient(image) as source, \
                    patient(image, options=["-incoming", where], boots=False) as target, \
                    source.trace(begin("fbt::vfs_*: { @ = count(); }"), ["-q"]) as running:
                started(running)
                self.assertEqual(source.port.run(LOAD)[0], 0)
                # It sees nothing of what happens next, and lives.
                running.process.send_signal(signal.SIGSTOP)
                source.owner.ask("migrate-set-parameters", **{"max-bandwidth": 1 << 34})
                source.owner.ask("migrate", uri=where)
                self.await_migration(source, "completed")
                while target.owner.status() != "running":
                    time.sleep(0.05)
                status, said = target.port.run(f"rm /tmp/go; workload --reads {READS}")
                self.assertEqual(status, 0)
                self.assertIn(f"read {READS}\n", said.decode())

                cleaned = clean(target)

                self.assertEqual(cleaned.status, 0, cleaned)
                self.assertRegex(cleaned.stderr, LEFT)
                self.check_well(target)
                running.process.send_signal(signal.SIGCONT)
                outcome = running.finish()
                self.assertIn(f"ringside: tracing ended: {GONE}", outcome.stderr, outcome)
                self.assertEqual(source.owner.status(), "postmigrate")
                self.check_well(target)
                # And back where it was, if its owner thinks better of it. A task that stood still
                # inside of the stub has kept it there.
                source.owner.ask("cont")
                self.assertEqual(clean(source).status, 0)
                self.assertIn("nothing of an earlier ringside", clean(source).stderr)


    @ringside.takes_long
    def test_one_whose_memory_arrives_after_it_is_told_and_left_alone(self):
        """It runs where it goes to (postcopy), and the source hangs."""
        with tempfile.TemporaryDirectory() as folder:
            where = f"unix:{folder}/way"
            with patient("debian-6.12") as source, \
                    patient("debian-6.12", options=["-incoming", "defer"], boots=False) as target:
                for each in (source, target):
                    try:
                        each.owner.ask("migrate-set-capabilities",
                                       capabilities=[{"capability": "postcopy-ram", "state": True}])
                    except QmpError as error:
                        self.skipTest(f"no postcopy here: {error}")
                self.assertEqual(source.port.run(LOAD)[0], 0)
                target.owner.ask("migrate-incoming", uri=where)
                source.owner.ask("migrate-set-parameters",
                                 **{"max-bandwidth": 1 << 20, "max-postcopy-bandwidth": 300000})
                source.owner.ask("migrate", uri=where)
                self.await_migration(source, "active")
                source.owner.ask("migrate-start-postcopy")
                self.await_migration(source, "postcopy-active")
                self.await_migration(target, "postcopy-active")
                os.kill(source.pid, signal.SIGSTOP)
                try:
                    self.check_told(target, "postcopy-active")
                finally:
                    os.kill(source.pid, signal.SIGCONT)
                source.owner.ask("migrate-set-parameters",
                                 **{"max-bandwidth": 1 << 34, "max-postcopy-bandwidth": 0})
                self.await_migration(source, "completed")
                self.await_migration(target, "completed")
                text, tree = why(f"qmp:{target.path}")
                self.assertEqual(len(tree["vcpus"]), 2, text)
                text, tree = why(f"qmp:{source.path}")
                self.assertEqual(tree["causes"][0]["kind"], "stopped", text)
                self.assertEqual(target.port.run("rm /tmp/go")[0], 0)
                self.assertIn("nothing of an earlier ringside", clean(target).stderr)
                self.check_well(target)

    def check_told(self, machine, state):
        """Nobody stops it or waits for it, so that the next one finds its monitor free."""
        target = f"qmp:{machine.path}"
        for words in (["why", target], ["clean", target], ["--attach", target, "-n", "BEGIN { exit(0); }"],
                      ["why", target]):
            refused = ringside.run(machine=False, verb=words)
            self.assertEqual((refused.status, refused.stdout, refused.stderr), (
                1, "", f"ringside: {machine.path}: its memory still arrives from another host "
                       f"(query-migrate: {state}), and it may stand still for that: try again when that is "
                       "completed\n"))
        refused = ringside.run(machine=False, verb=["why", f"pid:{machine.pid}"])
        self.assertEqual(refused.status, 1, refused)
        self.assertIn("its guest's memory still arrives from another host", refused.stderr)
        self.assertEqual(machine.owner.status(), "running")


def is_taken(pid, number):
    """Whether no signal of that number waits for the process."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(("SigPnd:", "ShdPnd:")) and int(line.split()[1], 16) >> number - 1 & 1:
            return False
    return True


def parent(folder):
    """Of a process with this folder under /proc; None when it has gone."""
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def send(pid, number):
    """Sends a signal, and waits until somebody has taken it."""
    os.kill(pid, number)
    while not is_taken(pid, number):
        pass


class Orders(EndCase):
    """One order to end comes as several signals. All is printed, and nothing stays in the guest."""

    COUNT = 'fbt::vfs_*:entry { } syscall::read:entry /execname == "workload"/ { @["read"] = count(); }'

    def check_left(self, machine, truth, outcome):
        """The count is the guest's own, and there is nothing to clean."""
        self.assertEqual(outcome.stderr, "")
        self.assertEqual(outcome.counts().get("read"), truth["read"], outcome)
        self.assertIn("nothing of an earlier ringside", clean(machine).stderr)

    def reads(self, machine):
        """The workload's own word of what it did."""
        status, said = machine.port.run(f"workload --reads {READS}")
        self.assertEqual(status, 0)
        return ringside.Outcome(0, said.decode(), "").counts()

    def test_timeout_sends_two_and_a_terminal_more(self):
        """timeout(1) tells its child and then its group. Each is taken before the next one comes."""
        with patient() as machine:
            for signals in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM)):
                with machine.trace(begin(self.COUNT), ["-q"]) as running:
                    started(running)
                    truth = self.reads(machine)
                    for number in signals:
                        send(running.process.pid, number)
                    outcome = running.finish()
                self.assertEqual(outcome.status, 0, outcome)
                self.check_left(machine, truth, outcome)

    def test_a_terminal_that_closes(self):
        """The kernel tells the terminal's foreground, and a shell its jobs."""
        with patient() as machine, tempfile.TemporaryDirectory() as folder:
            out, err = (pathlib.Path(folder) / name for name in ("out", "err"))
            words = [ringside.binary(), "--attach", f"qmp:{machine.path}", "-qn", begin(self.COUNT)]
            shell, terminal = pty.fork()
            if shell == 0:
                os.execvp("bash", ["bash", "--norc", "-i"])
            os.write(terminal, f"{shlex.join(map(str, words))} >{out} 2>{err}\n".encode())
            machine.owner.wait_until(lambda: out.exists() and "tracing" in out.read_text())
            truth = self.reads(machine)
            (pid,) = (int(entry.name) for entry in pathlib.Path("/proc").glob("[0-9]*")
                      if parent(entry) == shell)
            os.close(terminal)
            os.waitpid(shell, 0)
            machine.owner.wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists())
            self.check_left(machine, truth, ringside.Outcome(0, out.read_text(), err.read_text()))


class Ends(EndCase):
    """The guest's kernel ends in the middle of a storm."""

    def test_a_reset(self):
        for image in ringside.IMAGES:
            with self.subTest(image), \
                    patient(image, options=["-action", "reboot=reset"]) as machine:
                with machine.trace(begin(ALL), ["-q"]) as running:
                    started(running)
                    self.assertEqual(machine.port.run(LOAD)[0], 0)
                    machine.owner.ask("system_reset")
                    outcome = running.finish()
                self.assertEqual((outcome.status, outcome.stderr.splitlines()[-1]),
                                 (1, "ringside: tracing ended: the guest rebooted"), outcome)
                machine.port.expect("ready")
                self.check_well(machine)

    def test_quit(self):
        with patient() as machine:
            with machine.trace(begin(ALL), ["-q"]) as running:
                started(running)
                self.assertEqual(machine.port.run(LOAD)[0], 0)
                try:
                    machine.owner.ask("quit")
                except (QmpError, ConnectionError):
                    pass  # it has no time for an answer
                outcome = running.finish()
            self.assertEqual((outcome.status, outcome.stderr.splitlines()[-1]),
                             (1, "ringside: tracing ended: its owner ended it (host-qmp-quit)"), outcome)

    def test_another_kernel(self):
        for image in ringside.IMAGES[-1:] if ringside.QUICK else ringside.IMAGES:  # minutes each
            with self.subTest(image), image_with_another_kernel(image) as environment:
                with mock.patch.dict(os.environ, environment):
                    self.check_kexec(image)

    def check_kexec(self, image):
        # By one thread: nobody starts the second kernel again if QEMU breaks it while it boots.
        with patient(image, accelerator="tcg,thread=single") as machine:
            with machine.trace(begin(SOME), ["-q"]) as running:
                started(running)
                machine.port.start(ANOTHER)
                machine.port.send("go")
                outcome = running.finish()
            self.assertEqual((outcome.status, outcome.stderr), (1, f"ringside: {STARTED_ANOTHER}\n"), outcome)
            machine.port.expect("ready")
            status, said = machine.port.run("kexec watch 2 1000 a0000")
            self.assertEqual(status, 0, said)
            self.assertIn("changed 0\n", said.decode())
            self.check_left_alone(machine)
            self.check_well(machine)


class Panic(EndCase):
    """A kernel that panics and is not told to reboot: its machine runs on."""

    def test_is_told(self):
        for image in ringside.IMAGES:
            with self.subTest(image), patient(image, append="panic=0") as machine:
                with machine.trace(begin("syscall::read:entry { @ = count(); }"), ["-q"]) as running:
                    started(running)
                    machine.port.start("echo c > /proc/sysrq-trigger")
                    machine.port.send("go")
                    outcome = running.finish()
                self.assertEqual(outcome.status, 1, outcome)
                self.assertRegex(outcome.stderr.splitlines()[-1],
                                 r"^ringside: tracing ended: the guest's kernel has panicked on CPU [01] "
                                 r"and stands still; `ringside why` tells more$")


class Sleep(EndCase):
    """A guest that is suspended, to RAM or to disk."""

    def test_a_guest_that_sleeps_is_refused_by_that_name(self):
        with patient("debian-6.12") as machine:
            machine.port.start("echo mem >/sys/power/state")
            machine.port.send("go")
            while machine.owner.status() != "suspended":
                time.sleep(0.05)
            refused = ringside.run("BEGIN { exit(0); }", machine=False,
                                   options=["--attach", f"qmp:{machine.path}"])
            self.assertEqual(refused.status, 1)
            self.assertRegex(refused.stderr, r"^ringside: \S+: its guest sleeps \(suspended to RAM\): "
                                             r"attach when it is awake\n$")
            machine.owner.ask("system_wakeup")
            self.assertEqual(machine.port.finish()[0], 0)
            self.check_counts(machine)

    @ringside.takes_long
    def test_one_that_goes_to_disk_takes_nothing_of_ours_along(self):
        """Nobody would serve a card, or set memory aside, where it wakes up."""
        for image, more in zip(ringside.IMAGES, ("", ",ivshmem")):
            with self.subTest(image, more=more), tempfile.NamedTemporaryFile() as disk:
                disk.truncate(1 << 30)
                options = ["-drive", f"if=none,id=swap,file={disk.name},format=raw",
                           "-device", "virtio-blk-pci,drive=swap,addr=0x10"]
                modules = "for m in $(cat /modules/virtio); do insmod /modules/$m; done"
                with patient(image, memory=256, options=options) as machine:
                    status, said = machine.port.run(
                        f"{modules}; busybox mkswap /dev/vda && busybox swapon /dev/vda && {LOAD}")
                    self.assertEqual(status, 0, said)
                    self.check_left(machine, more)
                with patient(image, memory=256, options=options) as machine:
                    # Goes on where the first one was: this is the end of that one's command.
                    machine.port.start(f"{modules}; cat /sys/class/block/vda/dev > /sys/power/resume")
                    machine.port.send("go")
                    status, said = machine.port.finish()
                    self.assertEqual((status, said.split()[-1]), (0, b"awake"), said)
                    self.assertIn("nothing of an earlier ringside", clean(machine).stderr)
                    self.assertEqual(machine.port.run("rm /tmp/go")[0], 0)
                    self.check_well(machine)

    def check_left(self, machine, more):
        """It suspends itself in a storm of firings, once the trace has ended."""
        with ringside.Run(begin(SOME), machine=False,
                          options=["--attach", f"qmp:{machine.path}{more}", "-q"]) as running:
            started(running)
            machine.port.start("echo disk > /sys/power/state && echo awake")
            machine.port.send("go")
            outcome = running.finish()
        self.assertEqual((outcome.status, outcome.stderr.splitlines()[-1]), (
            1, "ringside: tracing ended: the guest suspends itself to disk: attach again when it is awake"),
                         outcome)
        self.assertNotIn("stub", outcome.stderr)
        machine.await_end()


if __name__ == "__main__":
    unittest.main()
