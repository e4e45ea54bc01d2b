"""CPUs that go and come back, a guest that sleeps, NMIs: with every probe of fbt enabled.

A CPU that comes up or wakes up runs kernel code before it can take a breakpoint: an int3 there is
a triple fault, and a guest that is gone.
"""

import re
import sys
import unittest

import ringside
from test_storm import TROUBLE

ALL = ("fbt:::entry, fbt:::return { @all[probename] = count(); }"
       ' fbt::vfs_read:entry /execname == "workload" && arg2 > 0/ { @reads = count(); }'
       ' END { printa("<reads> %@d\\n", @reads); }')
WORKLOAD = "workload --reads 20 --writes 10 --getppid 50 --seconds"
CPU = "/sys/devices/system/cpu"
# A healthy kernel says this when it is asked for the stacks of its CPUs, and where it has to wait
# long for each word of them: a machine with too much to do has taken 20 s.
BACKTRACE = re.compile(r"NMI backtrace for cpu \d+|Call Trace:|INFO: NMI handler .* took too long.*"
                       r"|rcu: INFO: rcu_\w+ detected stalls on CPUs.*|\S+\+0x[0-9a-f]+/0x[0-9a-f]+")
# QEMU 7.2 dies where it is to pause in the very moment in which its guest falls asleep (README, Limits).
QEMU_FELL = "invalid runstate transition: 'paused' -> 'suspended'"
ATTEMPTS = 3


def meanwhile(script, seconds=4):
    """A command that does the script while the workload runs, and then shows the kernel's log."""
    return (f"dmesg -c >/dev/null; {WORKLOAD} {seconds} & {script}; wait;"
            f" echo online $(cat {CPU}/online); dmesg")


def run(program, image, command, options=()):
    """The run's outcome; one whose QEMU fell asleep and over begins again, which is told."""
    for _ in range(ATTEMPTS):
        outcome = ringside.run(program, image=image, cpus=2, options=["-q", *options], command=command)
        if QEMU_FELL not in outcome.stderr:
            break
        print(f"begins again: {QEMU_FELL}", file=sys.stderr)
    return outcome


class Hotplug(unittest.TestCase):
    def check(self, script, said, harmless=None, program=ALL, images=ringside.IMAGES):
        """Runs the script under all of fbt; `said` must be in the kernel's log so many times.

        Returns the counts of the last image."""
        for image in images:
            with self.subTest(image):
                outcome = run(program, image, meanwhile(script))

                counts = outcome.counts()
                self.assertEqual(outcome.status, 0, outcome)
                self.assertGreater(counts["rounds"], 0, outcome)
                self.assertEqual(counts["read"], 20 * counts["rounds"], outcome)
                self.assertEqual(counts["getppid"], 50 * counts["rounds"], outcome)
                self.assertEqual(counts["<reads>"], counts["read"], outcome)
                self.assertGreater(counts["entry"], counts["read"], outcome)
                self.assertIn("\nonline 0-1\n", outcome.stdout)
                for words, times in said.items():
                    self.assertEqual(outcome.stdout.count(words), times, (words, outcome))
                rest = harmless.sub("", outcome.stdout) if harmless else outcome.stdout
                self.assertIsNone(TROUBLE.search(rest), outcome)
                self.assertNotRegex(outcome.stderr, r"lost|error|changed its code")
        return counts

    def test_a_cpu_goes_off_and_on(self):
        self.check(f"for n in 1 2 3; do echo 0 >{CPU}/cpu1/online; echo 1 >{CPU}/cpu1/online; done",
                   {"CPU 1 is now offline": 3, "Booting Node 0 Processor 1": 3})

    def test_a_cpu_that_is_off_has_no_samples(self):
        program = ('syscall::getppid:entry /execname == "workload"/ { inside = 1; }'
                   ' profile-97 /inside/ { @[cpu] = count(); }'
                   ' END { printa("sampled %d %@d\\n", @); }')
        for image in ringside.IMAGES:
            with self.subTest(image):
                outcome = run(program, image,
                              f"echo 0 >{CPU}/cpu1/online; workload --getppid 50 --seconds 3")

                self.assertEqual(outcome.status, 0, outcome)
                self.assertEqual(re.findall(r"^sampled (\d) ", outcome.stdout, re.M), ["0"], outcome)

    def test_the_guest_sleeps_and_wakes_up(self):
        # The alarm leaves time to fall asleep in: a machine that is slow would sleep for ever.
        self.check("echo +20 >/sys/class/rtc/rtc0/wakealarm; echo mem >/sys/power/state",
                   {"PM: suspend entry (deep)": 1, "Low-level resume complete": 1,
                    "CPU1 is up": 1, "PM: suspend exit": 1})

    @ringside.takes_long
    def test_vcpus_are_sampled_before_between_and_after_two_sleeps(self):
        # Not often: QEMU 7.2 aborts where it is to pause in the moment in which the guest falls asleep.
        program = (ALL + " profile-5 { @samples[cpu] = count(); }"
                   " fbt::pm_suspend:return { sleeps++; }"
                   " profile-5 /sleeps == 2/ { @after = count(); }"
                   ' END { printa("<samples> %d %@d\\n", @samples); printa("<after> %@d\\n", @after); }')
        sleep = "echo +20 >/sys/class/rtc/rtc0/wakealarm; echo mem >/sys/power/state"
        counts = self.check(f"{sleep}; {sleep}; sleep 2",
                            {"PM: suspend entry (deep)": 2, "PM: suspend exit": 2},
                            program=program, images=ringside.IMAGES[:1])

        for what in ("<samples> 0", "<samples> 1", "<after>"):
            self.assertGreater(counts[what], 0, counts)

    def test_every_cpu_is_asked_for_its_stack_by_nmi(self):
        self.check("for n in 1 2 3 4; do echo l >/proc/sysrq-trigger; done",
                   {"Show backtrace of all active CPUs": 4}, BACKTRACE)


if __name__ == "__main__":
    unittest.main()
