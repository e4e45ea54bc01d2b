"""Runs build/ringside for a test and checks that nothing is left behind.

Used by the test_*.py files of this folder. Does not: know D, or start QEMU itself.
"""

import dataclasses
import os
import pathlib
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = ("debian-6.1", "debian-6.12")
QUICK = "RINGSIDE_QUICK" in os.environ  # as --ci has it, which leaves what takes long to --nightly
# Every guest that the programs have to work on; each kernel and each number of CPUs once.
EVERY_GUEST = [(image, cpus) for image in IMAGES for cpus in (1, 2)]
EACH_ONCE = EVERY_GUEST[1:3]
GUESTS = EACH_ONCE if QUICK else EVERY_GUEST
takes_long = unittest.skipIf(QUICK, "takes long: --nightly runs it")

# A loaded machine under TCG has taken minutes for what takes seconds.
TIMEOUT = 300
MARK = "RINGSIDE_TEST_RUN"
# How often a run is started whose guest is lost while it boots, and what ringside says of one. It
# says so only before it has touched the guest: no probe has been looked up, let alone placed.
ATTEMPTS = 3
LOST = r"ringside: (?:[\w.-]+: )?lost before tracing began: "  # of several machines it names one


def binary():
    """The ringside under test."""
    return pathlib.Path(os.environ.get("RINGSIDE_BUILD", ROOT / "build")) / "ringside"


def on_each(tests, guests=None, prefix=""):
    """Classes of `tests` by name, as unittest finds them, bound to each guest: pairs of an image and
    its number of CPUs, or by default the images alone."""
    found = {}
    for image, *cpus in guests or [(image,) for image in IMAGES]:
        name = prefix + re.sub(r"\W", "_", "_cpus_".join(map(str, (image, *cpus))))
        bound = {"image": image, "__module__": tests.__module__, **({"cpus": cpus[0]} if cpus else {})}
        found[name] = type(name, (tests, unittest.TestCase), bound)
    return found


def marked_processes(mark):
    """The pids of all live processes that a run started, however far they have got away."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            pass  # it ended, is a zombie, or is not ours
    return found


def wait_for_end(mark, timeout=20):
    """Waits until no process of a run is left; returns the pids of those that stay."""
    deadline = time.monotonic() + timeout
    while (left := marked_processes(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


class Leftovers(AssertionError):
    """Something of a run outlived it."""


@dataclasses.dataclass
class Outcome:
    """The outcome of one run."""

    status: int
    stdout: str
    stderr: str

    def __str__(self):
        return f"status {self.status}\nstdout:\n{self.stdout}\nstderr:\n{self.stderr}"

    def counts(self):
        """The lines "NAME ... VALUE" of stdout as a dictionary; keys joined by one blank.

        Takes in the workload's report and aggregations alike, which a test keeps apart by name.
        """
        found = {}
        for line in self.stdout.splitlines():
            words = line.split()
            if len(words) >= 2 and re.fullmatch(r"-?\d+", words[-1]):
                found[" ".join(words[:-1])] = int(words[-1])
        return found

    def section(self, name):
        """A part of stdout, between the lines "<NAME>" and "</NAME>", as another outcome."""
        match = re.search(rf"^<{name}>\n(.*?)^</{name}>$", self.stdout, re.DOTALL | re.MULTILINE)
        if not match:
            raise AssertionError(f"no section <{name}> in {self}")
        return Outcome(self.status, match[1], "")

    def buckets(self):
        """The non-empty rows of one quantize() as {value: count}."""
        rows = re.findall(r"^ *(-?\d+) \|[@ |]* +(\d+) *$", self.stdout, re.MULTILINE)
        return {int(value): int(count) for value, count in rows if int(count)}


class Run:
    """A ringside in the background; use as a context manager.

    QEMU's TCG now and then loses a guest while it boots, long before anything is traced (figures:
    images/README.md). finish() and read_until() then start the same run again, `attempts` times
    in all, and tell it on stderr with ringside's own words. They do so only where all of this is
    true, so that no loss that tracing could have caused is hidden: ringside ended with status 1,
    the last line on its stderr says that the guest was lost before tracing began, it has printed
    nothing on stdout, and it has left nothing behind. Whatever is lost later is the test's to see.
    """

    def __init__(self, program=None, *, image="debian-6.1", cpus=1, command=None, options=(),
                 machine=True, environment=None, attempts=ATTEMPTS, verb=(), shell=None, folder=None):
        """With `shell`, that shell command runs in `folder`, and ringside's own words are in it."""
        self.mark = uuid.uuid4().hex
        self._folder = tempfile.TemporaryDirectory(prefix="ringside-test-")
        words = [binary(), *verb]
        if machine:
            words += ["--image", image, "--cpus", str(cpus)]
            if qemu := os.environ.get("RINGSIDE_QEMU"):
                words += ["--qemu", qemu]
        if not verb:
            words += shlex.split(os.environ.get("RINGSIDE_OPTIONS", ""))
        words += options  # a test's own come last, and win
        if program is not None:
            words += ["-n", program]
        if command is not None:
            words += ["-c", command]
        if shell is not None:
            words = ["bash", "-c", shell]
        self._shared_before = set(os.listdir("/dev/shm"))
        self._words = [str(word) for word in words]
        self._cwd = folder
        self._environment = dict(os.environ, TMPDIR=self._folder.name, **{MARK: self.mark})
        self._environment.pop("DEBUGINFOD_URLS", None)  # no test asks servers but those of its own
        if shell is not None:
            self._environment["PATH"] = f"{binary().resolve().parent}:{os.environ['PATH']}"
        self._environment.update(environment or {})
        self._attempts_left = attempts
        self._read = ""  # of stdout, so far
        self._start()

    def _start(self):
        self._attempts_left -= 1
        self.process = subprocess.Popen(self._words, env=self._environment, text=True, cwd=self._cwd,
                                        errors="replace", stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def _started_again(self, outcome):
        """Whether an ended run has lost its guest while it booted and was started once more."""
        last = outcome.stderr.splitlines()[-1:]
        lost = outcome.status == 1 and not outcome.stdout and last and re.match(LOST, last[0])
        if not lost or self._attempts_left < 1:
            return False
        print(f"started again: {last[0]}", file=sys.stderr)
        self._start()
        return True

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for pid in marked_processes(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()
        self._folder.cleanup()

    def qemu(self):
        """The pids of the QEMUs of this run."""
        found = []
        for pid in marked_processes(self.mark):
            try:
                name = pathlib.Path(f"/proc/{pid}/comm").read_text()
            except OSError:
                continue
            if name.startswith("qemu"):
                found.append(pid)
        return found

    def read_until(self, found):
        """Reads stdout until found(text) of all that was read is true; returns that text.

        Reads the descriptor itself: what the stream object buffered would be lost to finish().
        """
        deadline = time.monotonic() + TIMEOUT
        while not found(self._read):
            descriptor = self.process.stdout.fileno()
            if not select.select([descriptor], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise AssertionError(f"not in time: {self._read}")
            if data := os.read(descriptor, 65536):
                self._read += data.decode(errors="replace")
            elif not self._started_again(outcome := self._end(TIMEOUT)):
                raise AssertionError(f"ended too early: {outcome}")
        return self._read

    def finish(self, timeout=TIMEOUT):
        """Waits for the end; returns the outcome after checking that nothing is left.

        Its stdout begins after what read_until() took.
        """
        already = len(self._read)
        while self._started_again(outcome := self._end(timeout)):
            pass
        return dataclasses.replace(outcome, stdout=outcome.stdout[already:])

    def _end(self, timeout):
        """The outcome of the process, with all that was read, once nothing of it is left."""
        try:
            stdout, stderr = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            why = self._why()
            self.process.kill()
            stdout, stderr = self.process.communicate()
            raise AssertionError("ringside did not end in time: "
                                 f"{Outcome(-1, self._read + stdout, stderr)}\n{why}") from None
        outcome = Outcome(self.process.returncode, self._read + stdout, stderr)
        self.check_nothing_left(outcome)
        return outcome

    def _why(self):
        """The words of `ringside why` about each guest of this run, from its memory alone."""
        reports = []
        for pid in self.qemu():
            held = pathlib.Path(f"/proc/{pid}/fd").iterdir()
            memory = next(entry for entry in held if "ringside-guest-ram" in os.readlink(entry))
            report = subprocess.run([binary(), "why", "--core", memory], text=True, errors="replace",
                                    check=False, capture_output=True, timeout=TIMEOUT)
            reports.append(report.stdout + report.stderr)
        return "\n".join(reports)

    def check_nothing_left(self, outcome):
        """No process, no socket or file, no shared memory of the run."""
        if left := wait_for_end(self.mark):
            raise Leftovers(f"processes {left} outlived ringside: {outcome}")
        if files := os.listdir(self._folder.name):
            raise Leftovers(f"files {files} were left in TMPDIR: {outcome}")
        shared = {name for name in os.listdir("/dev/shm") if "ringside" in name}
        if shared - self._shared_before:
            raise Leftovers(f"shared memory {shared} was left: {outcome}")


def run(program=None, *, timeout=TIMEOUT, **settings):
    """Runs ringside to its end; `settings` are those of Run."""
    with Run(program, **settings) as running:
        return running.finish(timeout)
