"""libringside on a guest that its owner has started.

Programs of the library run in processes of their own and say "tracing" when their probes stand. Truth
is the workload's own word.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import unittest

import guest
import ringside
from test_attach_qmp import Machine

READS = 3000
BUILD = pathlib.Path(os.environ.get("RINGSIDE_BUILD", guest.ROOT / "build"))
EXAMPLE = BUILD / "library/trace_example"
READ = 'syscall::read:entry /execname == "workload"/'
LAST = 'syscall::exit_group:entry /execname == "workload"/ { exit(3); }'
ROOM = ("bufsize=16m", "switchrate=20hz")


class Program:
    """A process that uses the library."""

    def __init__(self, words, env=None):
        self.process = subprocess.Popen([str(word) for word in words], env=env, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.communicate()

    def await_line(self, start):
        """Waits until it says so."""
        for line in self.process.stdout:
            if line.startswith(start):
                return
        raise AssertionError(f"it has ended instead: {self.process.communicate()[1]}")

    def finish(self):
        """Its status, and all that it has said since."""
        out, err = self.process.communicate(timeout=guest.TIMEOUT)
        return self.process.returncode, out, err


def counts_of(said):
    """The calls that the workload says it has made."""
    return ringside.Outcome(0, said.decode(), "").counts()


class OnGuest(unittest.TestCase):
    """One guest for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.machine = cls.enterClassContext(Machine(cpus=2))
        cls.target = f"qmp:{cls.machine.path}"

    def run_workload(self):
        """Runs it; how often it has called read()."""
        status, said = self.machine.port.run(f"workload --reads {READS}")
        self.assertEqual(status, 0)
        return counts_of(said)["read"]

    def check_left_alone(self):
        """The guest runs, and nothing of ours is plugged into it."""
        self.assertEqual(self.machine.owner.status(), "running")
        self.assertEqual(self.machine.owner.chardevs(), self.machine.chardevs)


class C(OnGuest):
    """The header, by the example that comes with it."""

    def trace(self, program, *options):
        """Traces a workload; its reads and the example's lines."""
        with Program([EXAMPLE, self.target, program, *ROOM, *options]) as running:
            running.await_line("tracing")
            reads = self.run_workload()
            status, out, err = running.finish()
        self.assertEqual((status, err), (0, ""), out)
        self.check_left_alone()
        return reads, out.splitlines()

    def check_counts(self, *options):
        """Each read is a record, and the aggregation has counted them all."""
        reads, lines = self.trace(f'{READ} {{ trace(4711); @[execname] = count(); }} {LAST}', *options)
        self.assertEqual(lines.count("integer: 4711"), reads)
        self.assertIn("status: 3", lines)
        found = [json.loads(line.partition(": ")[2]) for line in lines if line.startswith("aggregations")]
        self.assertEqual(found, [[{"aggregation-data": [{"keys": ["workload"], "count": reads}],
                                   "aggregation-name": "_", "aggregation-function": "count"}]])

    def test_records_by_callback(self):
        self.check_counts()

    def test_records_by_polling(self):
        self.check_counts("poll")

    def test_a_signal_handler_stops_it_and_END_fires(self):
        with Program([EXAMPLE, self.target, 'END { trace("last"); }']) as running:
            running.await_line("tracing")
            running.process.send_signal(signal.SIGINT)
            status, out, err = running.finish()
        self.assertEqual((status, err), (0, ""))
        self.assertIn("text: last", out.splitlines())
        self.check_left_alone()

    def test_errors_have_a_place(self):
        with Program([EXAMPLE, self.target, "BEGIN\n{\n  trace(nothing);\n}"]) as running:
            status, out, err = running.finish()
        self.assertEqual((status, out), (1, ""))
        self.assertIn("D_IDENT_UNDEF at line 3, column 9", err)
        self.check_left_alone()

    def test_what_is_for_the_command_is_refused(self):
        with Program([EXAMPLE, self.target, 'BEGIN { system("true"); }', "destructive"]) as running:
            status, out, err = running.finish()
        self.assertEqual((status, out), (1, ""))
        self.assertIn("system() is for the command's output", err)
