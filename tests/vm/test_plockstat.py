"""plockstat: locks of a program that takes each a known number of times (mutexes.c)."""

import collections
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

import ringside
from made_images import Archive, dynamic_program, initrd_with
from test_attach_qmp import Machine, begin, end, started

ROUNDS, WAITERS = 50, 3
OPTIONS = ("-D_GNU_SOURCE", "-pthread")
PROBES = 'plockstatPID::: { printf("%s %x %d\\n", probename, arg0, arg1); }'


class Counts(unittest.TestCase):
    IMAGE, CPUS = "debian-6.12", 2

    @classmethod
    def setUpClass(cls):
        archive = Archive()
        archive.file("bin/mutexes", dynamic_program("mutexes.c", *OPTIONS), 0o755)
        archive.file("bin/mutexes_static", dynamic_program("mutexes.c", "-static", *OPTIONS), 0o755)
        initrd = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "initrd"
        initrd.write_bytes(initrd_with(cls.IMAGE, archive))
        cls.machine = cls.enterClassContext(Machine(cls.IMAGE, cls.CPUS, initrd=initrd))

    def guest(self, command):
        """The output of a command in the guest."""
        status, said = self.machine.port.run(command)
        self.assertEqual(status, 0, said)
        return said.decode()

    def begin(self, program="mutexes"):
        """The process number and the locks' addresses of one that waits for its word."""
        said = self.guest(f"rm -f /tmp/go /tmp/said; ({program} {ROUNDS} > /tmp/said; echo ended >> /tmp/said) & "
                          "while [ ! -s /tmp/said ]; do usleep 100000; done; cat /tmp/said")
        names = dict(re.findall(r"(\w+) (?:0x)?(\w+)", said))
        return names.pop("process"), {address: name for name, address in names.items()}

    def go(self):
        self.assertIn("done", self.guest("touch /tmp/go; while ! grep -q ended /tmp/said; do usleep 100000; done; "
                                         "cat /tmp/said"))

    def count(self, program, provider="plockstatPID"):
        """How often each probe fired, by the lock's name and arg1."""
        pid, locks = self.begin(program)
        clause = PROBES.replace("plockstatPID", provider).replace("PID", pid)
        if "*" in provider:
            clause = clause.replace("{", f"/pid == {pid}/ {{", 1)
        with self.machine.trace(begin(clause), ["-q"]) as running:
            started(running)
            self.go()
            outcome = end(running)
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        found = collections.Counter()
        for probe, address, argument in re.findall(r"^(\S+) (\w+) (\d+)$", outcome.stdout, re.MULTILINE):
            if address in locks:  # the C library has locks of its own
                found[probe, locks[address], 0 if probe == "mutex-block" else int(argument)] += 1
        return found

    def check(self, found):
        once, several = ROUNDS, WAITERS + 1
        # Its thread may come while the lock is held.
        found.pop(("mutex-block", "signalled", 0), None)
        self.assertEqual(found, {
            ("mutex-acquire", "plain", 0): 3 * once, ("mutex-release", "plain", 0): 3 * once,
            ("mutex-error", "plain", 110): once, ("mutex-block", "plain", 0): once,
            ("mutex-acquire", "recursive", 0): once, ("mutex-acquire", "recursive", 1): once,
            ("mutex-release", "recursive", 0): once, ("mutex-release", "recursive", 1): once,
            ("mutex-acquire", "checked", 0): once, ("mutex-release", "checked", 0): once,
            ("mutex-error", "checked", 35): once, ("mutex-error", "checked", 1): once,
            ("mutex-acquire", "held", 0): several, ("mutex-release", "held", 0): several,
            ("mutex-block", "held", 0): WAITERS,
            ("mutex-acquire", "signalled", 0): 3, ("mutex-release", "signalled", 0): 3,
            ("rw-acquire", "shared", 0): 2 * once + WAITERS - 1, ("rw-release", "shared", 0): 2 * once + WAITERS - 1,
            ("rw-acquire", "shared", 1): once + 2, ("rw-release", "shared", 1): once + 2,
            ("rw-block", "shared", 0): WAITERS - 1, ("rw-block", "shared", 1): 1})

    def test_of_a_process(self):
        self.check(self.count("mutexes"))

    def test_of_all_processes(self):
        self.check(self.count("mutexes", "plockstat*"))

    def test_of_a_static_program(self):
        self.check(self.count("mutexes_static"))

    def test_of_traps_that_wait(self):
        """An address out of D's state makes all wait."""
        pid, locks = self.begin()
        clause = 'plockstatPID:::mutex-acquire { self->at = arg0; @[arg0, *(int *)copyin(self->at, 4)] = count(); }'
        with self.machine.trace(begin(clause.replace("PID", pid)), ["-q"]) as running:
            started(running)
            self.go()
            outcome = end(running)
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        found = {(locks[f"{int(address):x}"], int(word)): int(count)
                 for address, word, count in re.findall(r"^ +(\d+) +(\d) +(\d+)$", outcome.stdout, re.MULTILINE)
                 if f"{int(address):x}" in locks}
        self.assertEqual(found["plain", 1], 3 * ROUNDS, found)
        self.assertEqual(found["recursive", 1], 2 * ROUNDS, found)

    def command(self, *options):
        """The output of `ringside plockstat`, and the locks' addresses."""
        pid, locks = self.begin()
        with ringside.Run(machine=False, verb=("plockstat", *options, f"qmp:{self.machine.path}", pid)) as running:
            while not re.search(r"^ *[1-9]\d* places armed", self.figures(), re.MULTILINE):
                self.assertIsNone(running.process.poll())
                time.sleep(0.2)
            self.go()
            outcome = running.finish()  # the process has ended
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        return outcome.stdout, locks

    @staticmethod
    def figures():
        """Of the traces that run."""
        return subprocess.run([ringside.binary(), "stats"], check=False, capture_output=True, text=True).stdout

    def test_the_command(self):
        text, locks = self.command("-A")
        found = {}
        for title, lines in re.findall(r"^(\w.*)\n\nCount .*\n-+\n((?:.+\n)+)", text, re.MULTILINE):
            for count, address, caller in re.findall(r"^ *(\d+) +\d+ mutexes`0x(\w+) +mutexes`(\w+)", lines,
                                                     re.MULTILINE):
                key = title, locks[address], caller
                found[key] = found.get(key, 0) + int(count)
        for caller in "answer", "main":  # one may come while the other has it
            found.pop(("Mutex block", "signalled", caller), None)
        once = ROUNDS
        self.assertEqual(found, {
            ("Mutex hold", "plain", "main"): 3 * once, ("Mutex hold", "recursive", "main"): once,
            ("Mutex hold", "checked", "main"): once, ("Mutex hold", "held", "let_wait"): 1,
            ("Mutex hold", "held", "take_mutex"): WAITERS, ("Mutex hold", "signalled", "main"): 2,
            ("Mutex hold", "signalled", "answer"): 1,
            ("R/W reader hold", "shared", "main"): once, ("R/W reader hold", "shared", "take_shared"): WAITERS - 1,
            ("R/W writer hold", "shared", "main"): once, ("R/W writer hold", "shared", "let_wait"): 1,
            ("R/W writer hold", "shared", "take_shared"): 1,
            ("Mutex block", "held", "take_mutex"): WAITERS, ("Mutex unsuccessful block", "plain", "main"): once,
            ("R/W reader block", "shared", "take_shared"): WAITERS - 1,
            ("R/W writer block", "shared", "take_shared"): 1}, text)

    def test_the_command_with_stacks(self):
        text, _ = self.command("-s", "3")
        self.assertRegex(text, r"(?m)^    3 +\d+ mutexes`0x\w+ +\n +libc.so.6`pthread_mutex_lock\+0x\w+\n"
                               r" +mutexes`take_mutex\+0x\w+\n")
        self.assertNotIn("hold", text)

    def test_says_what_it_has_not(self):
        pid, _ = self.begin()
        outcome = self.machine.run(f"plockstat{pid}:::mutex-spin", ["-q"])
        self.assertEqual(outcome.status, 1, outcome)
        self.assertIn("spins inside of pthread_mutex_lock()", outcome.stderr)
        outcome = self.machine.run("plockstat99999:::mutex-block", ["-q"])
        self.assertIn("the guest has no process 99999", outcome.stderr)
        outcome = self.machine.run("plockstat1:::mutex-block", ["-q"])
        self.assertIn("neither a file libc.so.6 of the process nor its program has a function pthread_mutex_lock",
                      outcome.stderr)
        self.go()


class CountsOfOld(Counts):
    IMAGE, CPUS = "debian-6.1", 1


if __name__ == "__main__":
    unittest.main()
