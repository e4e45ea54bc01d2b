"""A guest without ringside: QEMU, an image and its command port (images/README.md).

Used by the tests of the images themselves and by tests/bench/compare. Does not: trace anything.
"""

import contextlib
import ctypes
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A loaded machine under TCG has taken minutes for what takes seconds.
TIMEOUT = 240
# For a guest's kernel: a loaded host may let a vCPU wait for half a minute.
PATIENT = "nosoftlockup rcupdate.rcu_cpu_stall_suppress=1"
# Why: images/README.md.
CPU = "max,-cx16"
APPEND = "console=ttyS0 panic=-1 quiet no_timer_check"
# An int3 of the kernel's own, while nobody traces: QEMU 7.2 went on executing what the guest had
# patched (images/README.md).
PATCHED_TEXT = "Oops: int3"
# How often a guest is started that QEMU 7.2 loses while it boots (images/README.md), and how long a boot
# may take that can be begun again. Nobody traces it then, so no loss that tracing could have caused is
# hidden.
ATTEMPTS = 3
BOOT_TIMEOUT = 150
# A guest is told this before it switches trace events on. Else the kernel notes the names of tasks at
# each switch, by a static key of the scheduler's, and where two CPUs meet QEMU 7.2 now and then
# executes a jump label's int3 that is gone (images/README.md).
NO_NAMES = "echo 0 >/sys/kernel/tracing/options/record-cmd"
LIBC = ctypes.CDLL(None)


def images_folder():
    """Where images/build put the images."""
    build = os.environ.get("RINGSIDE_BUILD", ROOT / "build")
    return pathlib.Path(os.environ.get("RINGSIDE_IMAGES", pathlib.Path(build) / "images"))


def fetched(script, word, what):
    """The path that a script of this folder says, which fetches from Debian; skips without network."""
    made = subprocess.run([ROOT / "tests/vm" / script, word], text=True, check=False,
                          capture_output=True)
    if made.returncode != 0:
        raise unittest.SkipTest(f"no {what}: {made.stderr.splitlines()[-1]}")
    return made.stdout.strip()


def suite_image(suite):
    """The folder with the image debian-SUITE, of another Debian's kernel; skips without network."""
    return fetched("suite_image", suite, f"kernel of Debian {suite}")


class OfSuite:
    """For the tests of a class: the kernel of another Debian, on two CPUs."""

    suite = ""
    cpus = 2

    @classmethod
    def setUpClass(cls):
        images = suite_image(cls.suite)
        cls.image = f"debian-{cls.suite}"
        cls.enterClassContext(mock.patch.dict(os.environ, RINGSIDE_IMAGES=images))


def end_with_parent():
    """Run in a new process: a test that is killed takes its guest along."""
    PR_SET_PDEATHSIG = 1
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class GuestError(Exception):
    """The guest did not do what its protocol says."""


class GuestSilent(GuestError):
    """The guest still runs, but did not say what it should have said by now."""


class CommandPort:
    """The host's end of a guest's command port over two connected sockets."""

    def __init__(self, control, output, explain=lambda: ""):
        self._sockets = {"control": control, "output": output}
        self._buffers = {"control": b"", "output": b""}
        self._explain = explain

    def close(self):
        """Closes both sockets."""
        for sock in self._sockets.values():
            sock.close()

    def _trouble(self, what, kind=GuestError):
        return kind(f"{what}\n{self._explain()}")

    def _pump(self, deadline):
        """Moves bytes from both sockets into the buffers; waits for at least one."""
        left = deadline - time.monotonic()
        ready = select.select(list(self._sockets.values()), [], [], max(left, 0))[0]
        if not ready or left < 0:
            raise self._trouble("the guest was silent for too long", GuestSilent)
        for name, sock in self._sockets.items():
            if sock in ready:
                data = sock.recv(65536)
                if not data:
                    raise self._trouble("QEMU ended")
                self._buffers[name] += data

    def answer(self, timeout=TIMEOUT):
        """The next line of the control port."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffers["control"]:
            self._pump(deadline)
        line, self._buffers["control"] = self._buffers["control"].split(b"\n", 1)
        return line.decode()

    def expect(self, start, timeout=TIMEOUT):
        """The rest of the next line, which has to begin with `start`."""
        line = self.answer(timeout)
        if not line.startswith(start):
            raise self._trouble(f"expected '{start}...', got '{line}'")
        return line[len(start):].strip()

    def send(self, line):
        """Sends one request."""
        self._sockets["control"].sendall(line.encode() + b"\n")

    def output(self):
        """Takes everything that commands have printed so far."""
        taken, self._buffers["output"] = self._buffers["output"], b""
        return taken

    def wait_for(self, text, timeout=TIMEOUT):
        """Waits until the command has printed that text, which stays among the output."""
        deadline = time.monotonic() + timeout
        while text not in self._buffers["output"]:
            self._pump(deadline)

    def stays_silent(self, seconds):
        """Whether no command prints anything for that long."""
        ready = select.select([self._sockets["output"]], [], [], seconds)[0]
        return not ready and not self._buffers["output"]

    def start(self, command):
        """Prepares a command; returns its pid. It runs after send("go")."""
        self.send("run " + os.fsencode(command).hex())
        return int(self.expect("pid"))

    def finish(self, timeout=TIMEOUT):
        """Waits for the command's end; returns (status, output)."""
        status = int(self.expect("exit", timeout))
        # The guest drained the line before it said so; take what is still between QEMU and us.
        while select.select([self._sockets["output"]], [], [], 0.05)[0]:
            self._pump(time.monotonic() + 1)
        return status, self.output()

    def run(self, command):
        """Runs a command to its end; returns (status, output)."""
        self.start(command)
        self.send("go")
        return self.finish()


@contextlib.contextmanager
def bare_qemu(path, *options, wait="off"):
    """A QEMU without a guest's system, its monitor at `path`; gives its process, which it ends."""
    pathlib.Path(path).unlink(missing_ok=True)
    words = [os.environ.get("RINGSIDE_QEMU", "qemu-system-x86_64"), "-accel", "tcg", "-m", "64",
             "-nodefaults", "-display", "none", "-qmp", f"unix:{path},server=on,wait={wait}", *options]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, preexec_fn=end_with_parent) as process:
        try:
            deadline = time.monotonic() + TIMEOUT
            while not os.path.exists(path) and time.monotonic() < deadline:
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


class Guest:
    """One running QEMU; a context manager that gives its command port and ends it."""

    def __init__(self, image, cpus=1, memory=512, options=(), *, cpu=CPU, initrd=None,
                 append="", qemu=None, boots=True, accelerator="tcg,thread=multi"):
        """With boots=False it comes from somewhere with its system in it (-incoming)."""
        self._boots = boots
        self._folder = tempfile.TemporaryDirectory(prefix="ringside-guest-")
        folder = pathlib.Path(self._folder.name)
        self._listeners = {}
        self._port = None
        serials = ["-serial", f"file:{folder}/console"]
        for name in ("control", "output"):
            self._listeners[name] = socket.socket(socket.AF_UNIX)
            self._listeners[name].bind(f"{folder}/{name}")
            self._listeners[name].listen(1)
            serials += ["-serial", f"unix:{folder}/{name}"]
        files = images_folder() / image
        qemu = qemu or os.environ.get("RINGSIDE_QEMU", "qemu-system-x86_64")
        self._command = [
            qemu, "-accel", accelerator, "-cpu", cpu, "-smp", str(cpus), "-m", str(memory),
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", files / "vmlinuz", "-initrd", initrd or files / "initrd",
            "-append", f"{APPEND} {append}", *serials, *options]
        self._start()

    def _start(self):
        with open(pathlib.Path(self._folder.name) / "stderr", "wb") as errors:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stderr=errors,
                                             preexec_fn=end_with_parent)

    def __enter__(self):
        try:
            for _ in range(ATTEMPTS - 1 if self._boots else 0):
                try:
                    self._connect(BOOT_TIMEOUT)
                    return self._port
                except GuestError as error:
                    print(f"started again: lost while it booted: {error}", file=sys.stderr)
                self._end()
                self._start()
            self._connect(TIMEOUT)
            return self._port
        except BaseException:
            self._close()
            raise

    def _connect(self, timeout):
        """Waits until the command port is ready."""
        sockets = {}
        for name, listener in self._listeners.items():
            listener.settimeout(TIMEOUT)
            sockets[name] = listener.accept()[0]
        self._port = CommandPort(**sockets, explain=self._explain)
        if self._boots:
            self._port.expect("ready", timeout)

    def __exit__(self, *unused):
        self._close()

    def pid(self):
        """The QEMU's process."""
        return self._process.pid

    def await_end(self):
        """Waits until the QEMU has ended by itself."""
        self._process.wait(TIMEOUT)

    def _end(self):
        self._process.kill()
        self._process.wait()
        if self._port:
            self._port.close()

    def _close(self):
        self._end()
        for listener in self._listeners.values():
            listener.close()
        self._folder.cleanup()

    def _explain(self):
        # A whole oops and what came of it.
        console = (pathlib.Path(self._folder.name) / "console").read_bytes()[-16000:]
        errors = (pathlib.Path(self._folder.name) / "stderr").read_bytes()[-500:]
        return (f"QEMU: {errors.decode(errors='replace')}\n"
                f"console: {console.decode(errors='replace')}")
