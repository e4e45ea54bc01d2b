"""Probes of a program of Go, whose runtime moves stacks, interrupts goroutines by signals, and ends the
program where a signal finds it at an address that it does not know."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import ringside
from test_attach_qmp import begin, end, started
from test_pid import Case, counts

NUMBER, WORKERS = 300, 4


@functools.cache
def go_program():
    """The bytes of the program goes.go."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program"
        subprocess.run(["go", "build", "-o", program, pathlib.Path(__file__).parent / "goes.go"], check=True,
                       env={**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off", "GOCACHE": folder + "/cache"})
        return program.read_bytes()


@unittest.skipUnless(shutil.which("go"), "there is no Go here (golang-go)")
class Counts(Case):
    def add_to(self, archive):
        archive.file("bin/goes", go_program(), 0o755)

    def begin_program(self):
        said = self.guest(f"rm -f /tmp/go /tmp/said; goes {NUMBER} > /tmp/went 2>&1 & echo process $!")
        return re.search(r"process (\d+)", said)[1]

    def go(self):
        """Its word; if it has died, what it wrote."""
        said = self.guest("touch /tmp/go; while [ ! -e /tmp/said ] && pidof goes > /dev/null; do sleep 0.1; done; "
                          "cat /tmp/said || tail -n 20 /tmp/went")
        self.assertRegex(said, "^deep", said)
        return counts(said)

    def trace_it(self, program, options=(), errors=r"\Z"):
        pid = self.begin_program()
        with self.machine.trace(begin(program.replace("PID", pid)), ["-q", *options]) as running:
            started(running)
            said = self.go()
            outcome = end(running)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertRegex(outcome.stderr, rf"\A{errors}", outcome)
        return counts(outcome.stdout), said

    def test_of_entries_and_returns_while_stacks_move_and_signals_come(self):
        before = self.guest("md5sum < /bin/goes")
        program = " ".join(f'pidPID:a.out:main.{name}:{which} {{ @["{name}_{which}"] = count(); }}'
                           for name in ("deep", "sums") for which in ("entry", "return"))
        for options in [], ["-x", "record=yes"]:
            found, said = self.trace_it(program, options)
            self.assertEqual(found, {f"{name}_{which}": number for name, number in said.items()
                                     for which in ("entry", "return")})
        self.assertEqual(self.guest("md5sum < /bin/goes"), before)

    def test_of_arguments_and_results(self):
        found, said = self.trace_it(
            "pidPID:a.out:main.sums:entry { @first = sum(arg0); @second = sum(arg1); @ninth = sum(arg8); } "
            "pidPID:a.out:main.sums:return { @result = sum(arg1); @other = sum(uregs[R_RBX]); } "
            'END { printa("first %@d\\n", @first); printa("second %@d\\n", @second); '
            'printa("ninth %@d\\n", @ninth); printa("result %@d\\n", @result); printa("other %@d\\n", @other); }')
        first, second = WORKERS * 10 * sum(range(NUMBER)), WORKERS * NUMBER * sum(range(10))
        self.assertEqual(found, {"first": first, "second": second, "ninth": 7 * said["sums"],
                                 "result": first + second + 28 * said["sums"], "other": second})

    def test_of_all_functions_of_the_program(self):
        found, said = self.trace_it('pid*:goes:main.*:return /probefunc == "main.deep"/ { @["deep"] = count(); } '
                                    "pid*:goes:main.*:entry /arg0 == -1/ { @never = count(); }",
                                    errors=r"[^\n]*1 of 8 probes are missing, goes:main\.leaf:entry[^\n]*\n\Z")
        self.assertEqual(found.get("deep"), said["deep"])

    def test_left_by_a_killed_ringside_leave_the_program_alone(self):
        before = self.guest("md5sum < /bin/goes")
        pid = self.begin_program()
        with self.machine.trace(begin(f"pid{pid}:a.out:main.*:entry,pid{pid}:a.out:main.*:return {{}}")) as running:
            started(running)
            running.process.kill()
        self.go()
        outcome = ringside.run(machine=False, verb=["clean", f"qmp:{self.machine.path}"])
        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(self.guest("md5sum < /bin/goes"), before)

    def test_are_refused_elsewhere(self):
        pid = self.begin_program()
        self.assertIn("only returns have probes, and entries of functions that have a stack frame",
                      self.refused(f"pid{pid}:a.out:main.leaf:entry {{}}"))
        self.assertIn("only returns have probes", self.refused(f"pid{pid}:a.out:main.deep:0 {{}}"))
        self.go()


class CountsOfOld(Counts):
    IMAGE, CPUS = "debian-6.1", 1


if __name__ == "__main__":
    unittest.main()
