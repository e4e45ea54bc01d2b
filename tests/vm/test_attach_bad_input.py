"""Targets that no program can trace: each is refused in one line, or looked at as far as that goes,
by --attach, why and clean, and stays as it was.
"""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import unittest.mock

import guest
import ringside
from patient import why
from qmp import Qmp
from test_attach_qmp import Machine, begin, started
from test_vms import listed

HERE = pathlib.Path(__file__).resolve().parent
VERBS = (("--attach",), ("why",), ("clean",))


def ask(verb, target, program="BEGIN { exit(0); }", **settings):
    """The outcome of one of the ways in which ringside may be asked to look at a target."""
    words = ("-qn", program) if verb == ("--attach",) else ()
    return subprocess.run([ringside.binary(), *verb, target, *words], text=True, check=False,
                          capture_output=True, timeout=ringside.TIMEOUT, **settings)


class Refusals(unittest.TestCase):
    """The check that all have in common."""

    def check_refused(self, target, words, **settings):
        """One line, whatever is asked for."""
        for verb in VERBS:
            with self.subTest(verb=verb, target=target):
                said = ask(verb, target, **settings)
                self.assertEqual((said.returncode, said.stdout, said.stderr),
                                 (1, "", f"ringside: {words}\n"))


class Case(Refusals):
    """With a folder for sockets."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringside-bad-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.qmp = self.folder / "qmp"


class NoMachine(Case):
    """Nothing that runs a guest."""

    def test_processes_that_run_no_guest(self):
        with subprocess.Popen(["sleep", "600"], preexec_fn=guest.end_with_parent) as process:
            self.check_refused(f"pid:{process.pid}", f"process {process.pid} (sleep) runs no virtual"
                                                     " machine: it has no vCPU of KVM")
            process.kill()
        self.check_refused(f"pid:{process.pid}", f"there is no process {process.pid}")

    def test_paths_that_are_no_socket(self):
        (self.folder / "file").touch()
        for path in (self.folder, self.folder / "file"):
            self.check_refused(f"qmp:{path}", f"{path} is no socket: name the one that QEMU makes by"
                                              " -qmp unix:PATH,server=on,wait=off")
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(self.qmp))
        self.check_refused(f"qmp:{self.qmp}", f"nobody listens at {self.qmp}: its QEMU has ended")


class NoGuest(Case):
    """QEMUs that run nothing that could be traced."""

    def test_processors_that_are_not_x86_64(self):
        for program in ("qemu-system-i386", "qemu-system-arm", "qemu-system-aarch64"):
            if not shutil.which(program):
                # The first is of the same package as the one for x86-64.
                self.assertNotEqual(program, "qemu-system-i386")
                continue
            processor = program.rpartition("-")[2]
            words = f"its guest's processor is {processor}: ringside knows x86_64 only"
            machine = "pc" if processor == "i386" else "virt"
            with unittest.mock.patch.dict(os.environ, RINGSIDE_QEMU=program), \
                    guest.bare_qemu(self.qmp, "-machine", machine) as process:
                self.check_refused(f"qmp:{self.qmp}", f"{self.qmp}: {words}")
                self.check_refused(f"pid:{process.pid}", f"process {process.pid}: {words}")
                vm = listed(process.pid)
                self.assertEqual((vm["attach"], vm["obstacle"]), (None, f"process {process.pid}: {words}"))
                self.check_runs()

    def check_runs(self):
        """It was not stopped, and its monitor is free."""
        monitor = Qmp(self.qmp)
        self.assertTrue(monitor.ask("query-status")["running"])
        monitor.close()

    def test_a_list_says_why_there_is_no_guest(self):
        for options, state, words in (
                (["-incoming", "defer"], "inmigrate", "it waits for a guest that comes from another host"
                                                      " or a file: attach when it runs"),
                (["-S"], "prelaunch", "its guest has not been started: attach when it runs")):
            with self.subTest(state), guest.bare_qemu(self.qmp, *options) as process:
                vm = listed(process.pid)
                self.assertEqual((vm["state"], vm["attach"], vm["obstacle"]), (state, None, words))
                attached = ask(("--attach",), f"qmp:{self.qmp}")
                self.assertEqual((attached.returncode, attached.stderr),
                                 (1, f"ringside: {self.qmp}: {words}\n"))


class Narrow(Case):
    """A system of 32 bits, which pages and is no Linux."""

    @contextlib.contextmanager
    def machine(self):
        """One that has begun."""
        kernel, said = self.folder / "narrow", self.folder / "said"
        subprocess.run(["gcc", "-m32", "-nostdlib", "-static", "-Wl,-Ttext=0x100000",
                        "-Wl,--build-id=none", "-Wl,--oformat=binary", "-Wl,-e,0x100000",
                        "-o", kernel, HERE / "narrow.S"], check=True)
        with guest.bare_qemu(self.qmp, "-kernel", kernel, "-debugcon", f"file:{said}") as process:
            deadline = time.monotonic() + guest.TIMEOUT
            while not (said.exists() and b"P" in said.read_bytes()) and process.poll() is None:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
            yield process

    def test_it_is_named_and_profiled(self):
        with self.machine():
            self.check_why(*why(f"qmp:{self.qmp}"))
            profiled = ask(("--attach",), f"qmp:{self.qmp}",
                           "profile-97 { @[arg0 >> 12] = count(); } tick-2s { exit(0); }")
            self.assertEqual(profiled.returncode, 0, profiled.stderr)
            place, count = profiled.stdout.split()
            self.assertEqual(int(place), 0x102, "all samples are of the loop")
            self.assertGreater(int(count), 0)
            refused = ask(("--attach",), f"qmp:{self.qmp}", "fbt::vfs_read:entry { }")
            self.assertEqual(refused.returncode, 1)
            self.assertIn("no Linux that runs was found in the guest", refused.stderr)
            monitor = Qmp(self.qmp)
            self.assertTrue(monitor.ask("query-status")["running"])
            monitor.ask("dump-guest-memory", paging=False, protocol=f"file:{self.folder}/core")
            monitor.close()
        self.check_why(*why("--core", self.folder / "core"))

    def check_why(self, text, tree):
        """It is named in the cause and in the vCPU's mode."""
        self.assertEqual([(cause["kind"], cause["text"]) for cause in tree["causes"]], [
            ("no-linux", "the guest's system has 32 bits: ringside knows Linux of x86-64 only")], text)
        self.assertEqual([(vcpu["mode"], int(vcpu["rip"], 16) >> 12) for vcpu in tree["vcpus"]],
                         [("32-bit", 0x102)], text)


class OwnEnds(Case):
    """Guests that end by themselves in QEMUs that stay."""

    def test_each_is_one_line(self):
        for command, words in (("poweroff -f", "the guest powered itself off"),
                               ("reboot -f", "the guest rebooted"),
                               ("echo c >/proc/sysrq-trigger", "the guest rebooted")):
            with self.subTest(command), Machine(options=["-no-shutdown"]) as machine:
                with machine.trace(begin("fbt::vfs_*:entry { @ = count(); }"), ["-q"]) as running:
                    started(running)
                    machine.port.start(command)
                    machine.port.send("go")
                    outcome = running.finish()
                self.assertEqual((outcome.status, outcome.stderr),
                                 (1, f"ringside: tracing ended: {words}\n"), outcome)
                self.assertEqual(machine.owner.status(), "shutdown")
                vm = listed(machine.pid)
                self.assertEqual((vm["attach"], vm["obstacle"]), (None, "its guest has shut down"))


if __name__ == "__main__":
    unittest.main()
