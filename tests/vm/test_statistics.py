"""The cost of a trace: the figures at its end, and of one that runs, against a known workload."""

import json
import os
import re
import subprocess
import tempfile
import unittest

import ringside
from test_lifecycle import wait_for_firings

READS = 3000
PROGRAM = ('fbt::vfs_read:entry, fbt::vfs_read:return /execname == "workload"/'
           " { @[probename] = count(); }"
           ' fbt::vfs_read:entry /execname == "workload"/ { @pairs = count(); }'
           " END { printa(@pairs); }")


class Statistics(unittest.TestCase):
    def test_the_figures_at_the_end_are_those_of_the_trace(self):
        for image, cpus in ringside.GUESTS:
            with self.subTest(image=image, cpus=cpus):
                outcome = ringside.run(PROGRAM, image=image, cpus=cpus, options=["-v", "-x", "record=no"],
                                       command=f"workload --reads {READS}")

                line = re.search(r"(\d+) firings by (\d+) traps; 0 missed, 0 drops\n",
                                 outcome.stderr)
                self.assertTrue(line, outcome)
                firings, traps = int(line[1]), int(line[2])
                # Other processes read as well; END is a firing and no trap.
                self.assertGreaterEqual(traps, 2 * READS, outcome)
                self.assertEqual(firings, traps + 1, outcome)
                self.assertRegex(outcome.stderr, r"places armed, \d+ by jumps; 0 retired .*, 0 probes disarmed")
                self.assertRegex(outcome.stderr, r"the guest stood still \d+ times, for ")
                waits = ringside.Outcome(0, outcome.stderr, "").buckets()
                self.assertEqual(sum(waits.values()), traps, outcome)

    def test_traps_that_are_recorded_have_figures_of_their_own(self):
        for image, cpus in ringside.GUESTS:
            with self.subTest(image=image, cpus=cpus):
                outcome = ringside.run(PROGRAM, image=image, cpus=cpus, options=["-v"],
                                       command=f"workload --reads {READS}")

                self.assertRegex(outcome.stderr, rf"{2 * READS + 1} firings by \d+ traps, \d+ recorded, \d+ left out "
                                 "by predicates in the guest; 0 missed, 0 drops\n")
                self.assertRegex(outcome.stderr, r"places armed, \d+ by jumps; 2 recording, 0 retired ")

    def test_structured_output_has_a_record_of_them(self):
        outcome = ringside.run(PROGRAM, options=["-v", "-O", "jsonl", "-x", "record=no"],
                               command=f"workload --reads {READS}")

        # Between the report of stability and what the workload says.
        records = [json.loads(line) for line in outcome.stdout.splitlines() if line[:1] == "{"]
        figures = [each["statistics"] for each in records if each["name"] == "STATISTICS"]
        self.assertEqual(len(figures), 1, outcome)
        waits = sum(bucket["count"] for bucket in figures[0]["waits"])
        self.assertGreaterEqual(waits, 2 * READS, outcome)
        self.assertEqual(figures[0]["firings"], waits + 1, outcome)
        self.assertEqual(figures[0]["misses"], 0, outcome)

    def test_stats_shows_a_trace_that_runs_and_none_that_was_killed(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {"XDG_RUNTIME_DIR": folder}

            def stats(*words):
                return subprocess.run([ringside.binary(), "stats", *words], text=True,
                                      env=dict(os.environ, **environment), capture_output=True,
                                      timeout=ringside.TIMEOUT, check=False)

            program = PROGRAM + ' tick-10hz { printa("<seen> %@d\\n", @pairs); }'
            with ringside.Run(program, options=["-q"], environment=environment,
                              command="workload --reads 100 --seconds 600") as running:
                wait_for_firings(running)
                wait_for_firings(running)
                found = json.loads(stats("-O", "json").stdout)
                while not found or found[0]["firings"] == 0:  # they are written once a second
                    found = json.loads(stats("-O", "json").stdout)
                self.assertEqual(found[0]["pid"], running.process.pid)
                self.assertEqual(found[0]["machine"], "debian-6.1")
                self.assertGreater(found[0]["armed"], 1)
                text = stats("debian-6.1")
                self.assertEqual(text.returncode, 0, text)
                self.assertIn(f"traced by process {running.process.pid}", text.stdout)
                self.assertEqual(stats("another").returncode, 1)

                running.process.kill()
                running.process.wait()

                self.assertEqual(json.loads(stats("-O", "json").stdout), [])
                self.assertIn("no ringside of yours traces anything now", stats().stderr)


if __name__ == "__main__":
    unittest.main()
