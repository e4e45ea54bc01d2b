"""Traps that are recorded, and fire later: what D sees is the same as when the guest waits for it.

The counts are the workload's.
"""

import re
import time
import unittest

import ringside
from test_attach_ends import EndCase, clean, patient
from test_attach_qmp import begin, end, started
from test_storm import TROUBLE

READS, WRITES, THREADS = 2000, 500, 4
ALL = READS * THREADS
WORK = f"workload --reads {READS} --read-size 100 --threads {THREADS}; workload --writes {WRITES}"
# Globals and self-> depend on the order of the firings, keys on who fired. <late>: a return whose
# entry has not fired before it.
PROGRAM = """
    fbt::vfs_read:entry /execname == "workload"/ {
      self->size = arg2; self->at = timestamp; @in = count(); reads++;
    }
    fbt::vfs_read:return /execname == "workload" && !self->at/ { @late = count(); }
    fbt::vfs_read:return /self->at/ {
      @out = count(); @bytes = sum(self->size); @short = sum(self->size - arg1);
      @backwards = sum(timestamp < self->at); @threads[tid] = count();
      self->size = 0; self->at = 0;
    }
    syscall::read:entry /execname == "workload"/ { @calls[probefunc] = count(); }
    END {
      printa("<in> %@d\\n", @in); printa("<out> %@d\\n", @out); printa("<bytes> %@d\\n", @bytes);
      printa("<short> %@d\\n", @short); printa("<late> %@d\\n", @late);
      printa("<backwards> %@d\\n", @backwards); printa("<calls> %s %@d\\n", @calls);
      printf("<reads> %d\\n", reads); trunc(@threads, 4); printa("<thread> %@d\\n", @threads);
    }"""
# A clause that looks at the guest's memory waits, and sees what was recorded before it.
MIXED = """
    fbt::vfs_read:entry /execname == "workload"/ { self->in = 1; @in = count(); }
    fbt::rw_verify_area:entry /self->in/ { self->comm = stringof(curthread->comm); @checked = count(); }
    fbt::vfs_read:return /self->in && self->comm == "workload"/ {
      @out = count(); self->in = 0; self->comm = 0;
    }
    END {
      printa("<in> %@d\\n", @in); printa("<checked> %@d\\n", @checked); printa("<out> %@d\\n", @out);
    }"""


def recorded(outcome):
    """How many traps were."""
    found = re.search(r" traps?, (\d+) recorded", outcome.stderr)
    return int(found[1]) if found else 0


class Started(unittest.TestCase):
    """Guests of ours."""

    def trace(self, program, image, cpus, *options, command=WORK):
        outcome = ringside.run(program, image=image, cpus=cpus, command=f"{command}; dmesg",
                               options=["-q", "-v", *options])
        self.assertEqual(outcome.status, 0, outcome)
        self.assertIsNone(TROUBLE.search(outcome.stdout), outcome)
        return outcome

    def printed(self, outcome):
        self.assertRegex(outcome.stderr, "; 0 missed, 0 drops")
        return outcome.stdout[outcome.stdout.rindex("<in>"):]

    def test_a_program_prints_the_same_both_ways(self):
        for image, cpus in [*ringside.GUESTS, ("debian-6.12", 4)]:
            for jumps in ("jumpprobes=no", "jumpprobes"):
                with self.subTest(image, cpus=cpus, jumps=jumps):
                    waited = self.trace(PROGRAM, image, cpus, "-x", jumps)
                    both = self.trace(PROGRAM, image, cpus, "-x", jumps, "-x", "record=yes")
                    self.assertEqual(recorded(waited), 0)
                    self.assertGreater(recorded(both), ALL)
                    self.assertEqual(self.printed(both), self.printed(waited))
                    for count in (f"<in> {ALL}\n<out> {ALL}\n<bytes> {100 * ALL}\n<short> 0\n<backwards> 0\n",
                                  f"<reads> {ALL}\n", f"<thread> {READS}\n" * THREADS):
                        self.assertIn(count, self.printed(both))

    def test_clauses_that_wait_see_what_was_recorded_before(self):
        for image, cpus in ringside.GUESTS:
            with self.subTest(image, cpus=cpus):
                outcome = self.trace(MIXED, image, cpus, "-x", "record=auto")
                self.assertGreater(recorded(outcome), ALL)
                self.assertEqual(self.printed(outcome).strip(),
                                 f"<in> {ALL}\n<checked> {ALL}\n<out> {ALL}")

    def test_what_a_full_ring_drops_is_told_to_the_last(self):
        for image, cpus in ringside.GUESTS:
            with self.subTest(image, cpus=cpus):
                outcome = self.trace('fbt::vfs_read:entry { @[execname] = count(); }'
                                     ' END { printa("<in> %s %@d\\n", @); }', image, cpus,
                                     "-x", "record=yes", "-x", "recordfull=drop",
                                     command="grep -c . /dev/null; workload --reads 200000 --file /dev/zero")
                seen = sum(int(count) for count in re.findall(r"^<in> \S+ (\d+)$", outcome.stdout, re.M))
                told = sum(int(count) for count in re.findall(r"(\d+) drops?: the rings into which",
                                                              outcome.stderr))
                figures = re.search(r"(\d+) firings? by (\d+) traps?, (\d+) recorded; (\d+) missed",
                                    outcome.stderr)
                self.assertEqual(int(figures[4]), told, outcome)
                self.assertEqual(int(figures[1]), seen + 1, outcome)  # END fires, too
                self.assertGreaterEqual(seen + told, 200000)
                self.assertLess(seen + told, 201000)

    def test_an_order_to_record_all_says_what_prevents_it(self):
        for program, why in (("fbt::vfs_read:entry { trace(curthread->pid); }", "line 1: "),
                             ("syscall::read:entry { @ = sum(arg2); }", "arg2 lies in the guest's memory"),
                             ("fbt::vfs_read:entry { stack(); }", "follows a stack"),
                             ("fbt::vfs_read:entry { trace(copyinstr(arg1)); }", "looks at the guest's memory")):
            with self.subTest(program):
                outcome = ringside.run(program, options=["-x", "record=yes"], command="true")
                self.assertEqual(outcome.status, 1, outcome)
                last = outcome.stderr.splitlines()[-1]
                self.assertRegex(last, "^ringside: .*-x record=yes: ")
                self.assertIn(why, last)
                self.assertIn("-x record=auto", last)


class Attached(EndCase):
    """Guests of others."""

    def test_counts_are_exact_and_nothing_is_left(self):
        for image in ringside.IMAGES:
            with self.subTest(image), patient(image) as machine:
                with machine.trace(begin(PROGRAM), ["-q", "-v", "-x", "record=yes"]) as running:
                    started(running)
                    status, said = machine.port.run(WORK)
                    outcome = end(running)
                self.assertEqual((status, outcome.status), (0, 0), said)
                self.assertRegex(outcome.stderr, "; 0 missed, 0 drops")
                self.assertIn(f"<in> {ALL}\n<out> {ALL}\n", outcome.stdout, outcome)
                self.check_well(machine)

    def test_a_guest_whose_tracer_was_killed_waits_for_nobody(self):
        for full in ("drop", "wait"):
            with self.subTest(full), patient() as machine:
                options = ["-q", "-x", "record=yes", "-x", f"recordfull={full}"]
                with machine.trace(begin(PROGRAM), options) as running:
                    started(running)
                    running.process.kill()
                    running.process.wait()
                    self.assertEqual(ringside.wait_for_end(running.mark), [])
                begun = time.monotonic()
                status, said = machine.port.run(f"workload --reads 100000 --file /dev/zero; {WORK}")
                self.assertEqual(status, 0, said)
                print(f"after the kill: {time.monotonic() - begun:.1f} s ({full})")
                cleaned = clean(machine)
                self.assertEqual(cleaned.status, 0, cleaned)
                self.check_well(machine)


if __name__ == "__main__":
    unittest.main()
