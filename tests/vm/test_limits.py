"""Limits on harm: what is over budget is taken out and told, all else stays exact; no watchdog of
the guest's, however impatient, sees anything of a storm or of a slow program."""

import re
import unittest

import ringside
from test_attach_qmp import Machine
from test_storm import TROUBLE

# A round: so many reads that the rate of the opens beside them is small.
ROUND = "workload --reads 20000 --opens 1 --seconds {}"
CALLS = ('syscall::read:entry /execname == "workload"/ { @["hot"] = count(); }'
         ' syscall::openat:entry /execname == "workload"/ { @["cold"] = count(); }')
# Soft lockups after 2 s, RCU stalls after 3 s: as early as kernels take them.
IMPATIENT = ("echo 1 >/proc/sys/kernel/watchdog_thresh;"
             " echo 3 >/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout;"
             ' echo "thresh $(cat /proc/sys/kernel/watchdog_thresh)";'
             ' echo "stall $(cat /sys/module/rcupdate/parameters/rcu_cpu_stall_timeout)";'
             " dmesg -c >/dev/null; {}; echo '<log>'; dmesg; echo '</log>'")
STORM = "fbt:::entry { @ = count(); } profile-97 { @samples = count(); }"
# Large strings, stacks and a loop, at each read.
SLOW = ('fbt::vfs_read:entry /execname == "workload"/ {'
        ' for (this->n = 0; this->n < 20000; this->n++) {'
        ' this->s = strjoin(stringof(curthread->comm), copyinstr(arg1 & ~0xfff)); }'
        ' printf("%s %s", this->s, this->s); stack(100); tracemem(curthread, 4096); }')
OVER = re.compile(r"^ringside: over budget \((\S+)\): \d+ traps a second, \d+ % of a vCPU's time; "
                  r"from now on (.*) (?:is|are) off and not counted; -x \S+ sets no limit$", re.M)


class Limits(unittest.TestCase):
    def test_over_the_rate_the_hottest_is_taken_out_and_the_others_stay_exact(self):
        for image, cpus in (("debian-6.1", 1), ("debian-6.12", 2)):
            with self.subTest(image=image, cpus=cpus):
                outcome = ringside.run(CALLS, image=image, cpus=cpus,
                                       options=["-q", "-x", "maxrate=200/s"],
                                       command=ROUND.format(15))

                self.assertEqual(outcome.status, 0, outcome)
                told = OVER.findall(outcome.stderr)
                self.assertEqual([limit for limit, _ in told], ["maxrate=200"], outcome)
                self.assertEqual(told[0][1], "syscall:vmlinux:read:entry", outcome)
                counts = outcome.counts()
                self.assertGreater(counts["hot"], 0, outcome)
                self.assertLess(counts["hot"], counts["read"], outcome)
                self.assertEqual(counts["cold"], counts["openat"], outcome)

    def test_without_a_limit_nothing_is_taken_out(self):
        outcome = ringside.run(CALLS, options=["-q"], command=ROUND.format(5))

        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        counts = outcome.counts()
        self.assertEqual(counts["hot"], counts["read"], outcome)

    def test_samples_leave_the_guest_its_share_of_time(self):
        with Machine() as machine:
            running = machine.trace("profile-997 { @ = count(); } tick-3s { exit(0); }",
                                    ["-v", "-q", "-x", "maxslow=2"])
            outcome = running.finish()

        self.assertEqual(outcome.status, 0, outcome)
        self.assertIn("over budget (maxslow=2): samples of profile-N are left out", outcome.stderr)
        self.assertRegex(outcome.stderr, r"; [1-9]\d+ samples left out\n")
        self.assertGreater(int(outcome.stdout.split()[-1]), 0)

    def check_watchdogs(self, program, options, image):
        outcome = ringside.run(program, image=image, cpus=2, options=["-q", *options],
                               command=IMPATIENT.format(ROUND.format(10)), timeout=900)

        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(outcome.counts()["thresh"], 1, outcome)
        self.assertEqual(outcome.counts()["stall"], 3, outcome)
        log = outcome.section("log").stdout
        self.assertIsNone(TROUBLE.search(log), log)
        return outcome

    def test_watchdogs_see_nothing_of_a_storm(self):
        for image in ringside.IMAGES:
            with self.subTest(image=image):
                outcome = self.check_watchdogs(STORM, ["-x", "maxslow=50"], image)
                self.assertTrue(OVER.search(outcome.stderr), outcome.stderr)

    @ringside.takes_long
    def test_watchdogs_see_nothing_of_a_slow_program(self):
        for image in ringside.IMAGES:
            with self.subTest(image=image):
                outcome = self.check_watchdogs(SLOW, ["-x", "maxslow=50", "-x", "strsize=64k"],
                                               image)
                self.assertIn("vfs_read:entry is off", outcome.stderr)


if __name__ == "__main__":
    unittest.main()
