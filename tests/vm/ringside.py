"""Runs build/ringside for a test and checks that nothing is left behind.

Used by the test_*.py files of this folder. Does not: know D, or start QEMU itself.
"""

import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = ("debian-6.1", "debian-6.12")
# Every guest that the programs have to work on.
GUESTS = [(image, cpus) for image in IMAGES for cpus in (1, 2)]

# A loaded machine under TCG has taken minutes for what takes seconds.
PATIENCE = 300
MARK = "RINGSIDE_TEST_RUN"


def binary():
    """The ringside under test."""
    return pathlib.Path(os.environ.get("RINGSIDE_BUILD", ROOT / "build")) / "ringside"


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


def wait_for_end(mark, patience=20):
    """Waits until no process of a run is left; returns the pids of those that stay."""
    deadline = time.monotonic() + patience
    while (left := marked_processes(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


class Leftovers(AssertionError):
    """Something of a run outlived it."""


@dataclasses.dataclass
class Outcome:
    """What became of one run."""

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
    """A ringside in the background; use as a context manager."""

    def __init__(self, program=None, *, image="debian-6.1", cpus=1, command=None, options=(),
                 machine=True, environment=None):
        self.mark = uuid.uuid4().hex
        self._folder = tempfile.TemporaryDirectory(prefix="ringside-test-")
        words = [binary()]
        if machine:
            words += ["--image", image, "--cpus", str(cpus)]
            if qemu := os.environ.get("RINGSIDE_QEMU"):
                words += ["--qemu", qemu]
        words += options
        if program is not None:
            words += ["-n", program]
        if command is not None:
            words += ["-c", command]
        self._shared_before = set(os.listdir("/dev/shm"))
        env = dict(os.environ, TMPDIR=self._folder.name, **{MARK: self.mark})
        env.update(environment or {})
        self.process = subprocess.Popen([str(word) for word in words], env=env, text=True,
                                        errors="replace", stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

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

    def finish(self, timeout=PATIENCE):
        """Waits for the end; returns the outcome after checking that nothing is left."""
        try:
            stdout, stderr = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            stdout, stderr = self.process.communicate()
            raise AssertionError("ringside did not end in time: "
                                 f"{Outcome(-1, stdout, stderr)}") from None
        outcome = Outcome(self.process.returncode, stdout, stderr)
        self.check_nothing_left(outcome)
        return outcome

    def check_nothing_left(self, outcome):
        """No process, no socket or file, no shared memory of the run."""
        if left := wait_for_end(self.mark):
            raise Leftovers(f"processes {left} outlived ringside: {outcome}")
        if files := os.listdir(self._folder.name):
            raise Leftovers(f"files {files} were left in TMPDIR: {outcome}")
        shared = {name for name in os.listdir("/dev/shm") if "ringside" in name}
        if shared - self._shared_before:
            raise Leftovers(f"shared memory {shared} was left: {outcome}")


def run(program=None, *, timeout=PATIENCE, **settings):
    """Runs ringside to its end; `settings` are those of Run.

    QEMU 7.2's TCG now and then loses a 6.12 guest while it boots, long before anything is traced
    (once in some sixty boots on two vCPUs). Such a run, and only such a one, is made once more.
    """
    with Run(program, **settings) as running:
        outcome = running.finish(timeout)
    lost_in_boot = outcome.stderr == "ringside: the guest's command port was closed\n"
    if outcome.status != 1 or not lost_in_boot:
        return outcome
    print("the guest was lost while it booted; once more", file=sys.stderr)
    with Run(program, **settings) as running:
        return running.finish(timeout)
