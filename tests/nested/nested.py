"""A machine with KVM of its own: QEMU translates an AMD processor with SVM (level 1), in which
Debian's kernel runs the genuine kvm_amd, which runs VMs of ours (level 2).

Used by the tests of this folder, which share one such machine, and by tests/bench/nested. Level 1
is the image `nested-6.1` and is driven through its command port (images/README.md).
Does not: know D.

In level 1: /ringside/ringside with its lib/, /ringside/images/ with the images that ringside boots,
/ringside/tests/ with GoogleTest programs, /ringside/qemu/ with a QEMU and its firmware. Only /tmp
keeps what is written.
"""

import atexit
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

from payload import ROOT, Payload, PayloadError  # noqa: F401

sys.path[:0] = [str(ROOT / "tests/vm"), str(ROOT / "tests")]

import guest  # noqa: E402

IMAGE = "nested-6.1"
GUEST_IMAGES = ("debian-6.1", "debian-6.12")
# These run VMs of others in level 1, by -accel kvm.
QEMUS = ("qemu-system-x86_64", "qemu-system-x86_64-microvm")
FIRMWARE = ("/usr/share/seabios/bios-256k.bin", "/usr/share/qemu/linuxboot_dma.bin",
            "/usr/share/qemu/kvmvapic.bin", "/usr/share/qemu/bios-microvm.bin")
# SVM as kvm_amd wants it; cx16 is off as in guest.CPU.
CPU = "EPYC,+svm,+npt,-cx16"
MEMORY = 2048  # MiB: the payload is in it twice while level 1 boots
# The first CPU runs no VM. Whenever any CPU loads x87 state, QEMU 10.0's TCG rewrites the first
# one's hflags2 without a lock (cpu_clear_ignne, target/i386/tcg/system/fpu_helper.c), so a change
# by the first itself may get lost: nested paging on (its VM falls by a triple fault, once in some
# 70 runs of a lesson's command with two CPUs), or interrupts on again (level 1 stands still).
CPUS = 3
APPEND = "isolcpus=0"
# A loaded machine has taken ten times as long as a quiet one.
TIMEOUT = 600
ERRORS = "/tmp/.stderr"


def say(text):
    print(f"nested: {text}", file=sys.stderr, flush=True)


def qemu():
    """QEMU 10, unpacked on first use: the SVM that 7.2 translates ignores debug registers."""
    return subprocess.run([ROOT / "tests/vm/qemu10"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def build_folder():
    """The build under test."""
    return pathlib.Path(os.environ.get("RINGSIDE_BUILD", ROOT / "build")).resolve()


@dataclasses.dataclass
class Outcome:
    """The outcome of one command in level 1."""

    status: int
    stdout: str
    stderr: str
    seconds: float

    def __str__(self):
        return (f"status {self.status} after {self.seconds:.1f} s\n"
                f"stdout:\n{self.stdout}\nstderr:\n{self.stderr}")


class Level1Lost(Exception):
    """Level 1's own kernel stood still. Two translated processors with SVM do that now and then:
    one waits for ever for the other's answer to an interrupt."""


class Level1:
    """One running level 1; close() ends it."""

    def __init__(self, payload):
        self.lost = False
        start = time.monotonic()
        base = (guest.images_folder() / IMAGE / "initrd").read_bytes()
        with tempfile.NamedTemporaryFile(prefix="ringside-nested-") as initrd:
            initrd.write(base + b"\0" * (-len(base) % 4) + payload.bytes())
            initrd.flush()
            self._guest = guest.Guest(IMAGE, cpus=CPUS, memory=MEMORY, cpu=CPU,
                                      initrd=initrd.name, append=APPEND, qemu=qemu())
            self._port = self._guest.__enter__()
        say(f"level 1 is up after {time.monotonic() - start:.1f} s")

    def close(self):
        """Ends the machine, whatever it does. Idempotent."""
        if self._port:
            self._port = None
            self._guest.__exit__(None, None, None)

    def run(self, command, timeout=TIMEOUT):
        """Runs a shell command to its end and returns its Outcome.

        A command that takes longer than `timeout` seconds is killed with its process group and
        fails the test; one that then does not end loses the machine.
        """
        start = time.monotonic()
        try:
            self._port.start(f"({command}\n) 2>{ERRORS}")
            self._port.send("go")
            status, stdout = self._finish(command, timeout)
            seconds = time.monotonic() - start
            stderr = self._port.run(f"cat {ERRORS}")[1]
        except guest.GuestError as error:
            self.lost = True
            if "soft lockup" in str(error):
                raise Level1Lost(str(error)) from error
            raise
        return Outcome(status, stdout.decode(errors="replace"), stderr.decode(errors="replace"),
                       seconds)

    def _finish(self, command, timeout):
        try:
            return self._port.finish(timeout)
        except guest.GuestSilent:
            self._port.send("kill")
            stdout = self._port.finish(30)[1]
        stderr = self._port.run(f"cat {ERRORS}; dmesg | tail -n 20")[1]
        raise AssertionError(f"not at its end after {timeout} s: {command}\n"
                             f"{stdout.decode(errors='replace')}\n"
                             f"{stderr.decode(errors='replace')}")


def kvm_programs():
    """{name: path} of meson's test programs that use a real KVM: those of the suite `kvm`."""
    listing = subprocess.run(["meson", "introspect", "--tests", build_folder()], text=True,
                             capture_output=True, check=True).stdout
    return {test["name"].replace(" ", "_"): pathlib.Path(test["cmd"][0])
            for test in json.loads(listing) if any(s.endswith("kvm") for s in test["suite"])}


def test_payload():
    """Everything that the tests of this folder need."""
    build = build_folder()
    payload = Payload()
    payload.program(build / "ringside", "ringside/ringside")
    for library in sorted((build / "lib").glob("*.d")):
        payload.file(library, f"ringside/lib/{library.name}")
    files = [f"{image}/{name}" for image in GUEST_IMAGES for name in ("vmlinuz", "initrd")]
    for name in (*files, "teach/vmlinux"):
        payload.file(guest.images_folder() / name, f"ringside/images/{name}")
    for name, path in kvm_programs().items():
        payload.program(path, f"ringside/tests/{name}")
    for name in QEMUS:
        payload.program(f"/usr/bin/{name}", f"ringside/qemu/{name}")
    for path in FIRMWARE:
        payload.file(path, f"ringside/qemu/{pathlib.Path(path).name}")
    return payload


_shared = None


def level1():
    """The machine that all tests share; a new one when the last one was lost."""
    global _shared
    if _shared and _shared.lost:
        _shared.close()
        _shared = None
    if not _shared:
        _shared = Level1(test_payload())
    return _shared


@atexit.register
def end_level1():
    """Ends the shared machine. Idempotent."""
    global _shared
    if _shared:
        _shared.close()
    _shared = None


def once_more_when_lost(step, prepare=lambda: None):
    """Does `step`; after `prepare`, again if level 1 itself was lost."""
    try:
        return step()
    except Level1Lost as lost:
        say(f"once more, with a new machine: level 1's kernel stood still\n{lost}")
    prepare()
    return step()


class TestCase(unittest.TestCase):
    """A test with the shared machine, begun anew once when that machine itself was lost."""

    def _callSetUp(self):
        once_more_when_lost(super()._callSetUp)

    def _callTestMethod(self, method):
        once_more_when_lost(lambda: super(TestCase, self)._callTestMethod(method), self.setUp)

    def run_in_level1(self, command, status=0, **settings):
        """The outcome of a command that has to end with `status`."""
        outcome = level1().run(command, **settings)
        self.assertEqual(outcome.status, status, outcome)
        return outcome


def gtest_names(program):
    """"SUITE.CASE" of every case of a GoogleTest program, as its own binary lists them."""
    listing = subprocess.run([program, "--gtest_list_tests"], text=True, check=True,
                             capture_output=True).stdout
    names = []
    suite = ""
    for line in listing.splitlines():
        word = line.split("#")[0].strip()
        if word.endswith(".") and not line.startswith(" "):
            suite = word
        elif word and line.startswith(" "):
            names.append(suite + word)
    return names


def gtest_outcomes(report):
    """{"SUITE.CASE": (verdict, words)} of a GoogleTest XML report; the verdict is "good", "bad" or
    "skipped"."""
    outcomes = {}
    for case in xml.etree.ElementTree.fromstring(report).iter("testcase"):
        failures = [failure.get("message", "") for failure in case.iter("failure")]
        skips = [skip.get("message", "") for skip in case.iter("skipped")]
        verdict = "bad" if failures else "skipped" if skips else "good"
        outcomes[f"{case.get('classname')}.{case.get('name')}"] = (verdict,
                                                                   "\n".join(failures + skips))
    return outcomes


def gtest_class(name, program):
    """A test class with one test for each case of a GoogleTest program.

    One run in level 1 answers them all. RINGSIDE_KVM_REQUIRED is set: a case that a host without
    a fit KVM skips has to pass there.
    """

    def set_up(cls):
        command = ("rm -f /tmp/report.xml; RINGSIDE_KVM_REQUIRED=1"
                   f" /ringside/tests/{name} --gtest_output=xml:/tmp/report.xml")
        cls.outcome = once_more_when_lost(lambda: level1().run(command))
        report = level1().run("cat /tmp/report.xml")
        cls.cases = gtest_outcomes(report.stdout) if report.status == 0 else {}

    def one_test(case):
        def test(self):
            verdict, words = self.cases.get(case, ("bad", f"no word of it: {self.outcome}"))
            if verdict == "skipped":
                self.skipTest(words)
            self.assertEqual(verdict, "good", words)
        return test

    members = {f"test_{case.replace('.', '_').replace('/', '_')}": one_test(case)
               for case in gtest_names(program)}
    return type(name, (TestCase,), {"setUpClass": classmethod(set_up), **members})
