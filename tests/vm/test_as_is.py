"""Guests in which nothing was set aside for the stub, as somebody else has started them.

The stub goes to the first megabyte. With page-table isolation or without, whoever uses breakpoints
in the guest gets each of them as before, and ours are counted exactly.
"""

import re
import unittest

import ringside
from guest import PATIENT
from made_images import image_with_programs

TROUBLE = r"BUG|Oops|WARNING|Call Trace|int3:|general protection|double fault|stack guard"
ROUNDS = 300
READS = 2000
# The guest's own word that it isolates.
ISOLATED = "grep -o -w -m1 pti /proc/cpuinfo; dmesg | grep -o 'isolation: enabled'"
COUNT = ('syscall::read:entry /execname == "workload"/ { @["calls"] = count(); }'
         ' fbt::vfs_read:entry /execname == "workload"/ { @["entries"] = count(); }'
         ' fbt::vfs_read:return /execname == "workload"/ { @["returns"] = count(); }')
COMMAND = (f"{{ breakpoints {ROUNDS}; echo status $?; }} >/tmp/theirs &"
           f" workload --reads {READS}; wait; workload --reads {READS}; cat /tmp/theirs;"
           f" echo '<dm''esg>'; {ISOLATED}; dmesg; echo '</dm''esg>'")


class AsItIs(unittest.TestCase):
    def trace(self, image, cpus, append):
        environment = self.enterContext(image_with_programs(image, "breakpoints"))
        outcome = ringside.run(COUNT, image=image, cpus=cpus, command=COMMAND,
                               options=["-q", "--as-is", "--append", f"{PATIENT} {append}"],
                               environment=environment)
        self.assertEqual(outcome.status, 0, outcome)
        return outcome

    def check(self, outcome):
        counts = outcome.counts()
        # Each run of the workload reports its own.
        self.assertEqual(counts["read"], READS, outcome)
        for name in ("calls", "entries", "returns"):
            self.assertEqual(counts[name], 2 * READS, outcome)
        self.assertEqual((counts["traps"], counts["steps"], counts["wrong"]),
                         (2 * ROUNDS, ROUNDS, 0), outcome)
        self.assertEqual(counts["status"], 0, outcome)
        self.assertNotRegex(outcome.section("dmesg").stdout, TROUBLE)

    def check_isolated(self, append):
        for image, cpus in [("debian-6.1", 1), ("debian-6.12", 2), ("debian-6.1", 4)]:
            with self.subTest(image=image, cpus=cpus):
                outcome = self.trace(image, cpus, f"pti=on {append}")

                self.check(outcome)
                self.assertIn("pti\nisolation: enabled\n", outcome.stdout)

    def test_breakpoints_in_the_guest_go_on_as_before(self):
        for image, cpus in [("debian-6.1", 2), ("debian-6.12", 4)]:
            with self.subTest(image=image, cpus=cpus):
                self.check(self.trace(image, cpus, "pti=off"))

    def test_page_tables_may_be_isolated(self):
        self.check_isolated("no5lvl")

    def test_isolated_page_tables_may_have_five_levels(self):
        self.check_isolated("")

    def test_isolation_does_no_harm_where_memory_was_set_aside(self):
        environment = self.enterContext(image_with_programs("debian-6.1", "breakpoints"))

        outcome = ringside.run(COUNT, image="debian-6.1", cpus=2, command=COMMAND,
                               options=["-q", "--append", f"{PATIENT} pti=on"],
                               environment=environment)

        self.check(outcome)

    def test_what_does_not_fit_is_told_before_anything_stands(self):
        outcome = ringside.run("fbt::: { @ = count(); }", image="debian-6.1",
                               options=["-q", "--as-is"])

        self.assertEqual(outcome.status, 1, outcome)
        fit, asked = re.search(r"could not enable tracing: (\d+) probes fit, (\d+) asked: ",
                               outcome.stderr).groups()
        self.assertTrue(30_000 < int(fit) < int(asked), outcome)


if __name__ == "__main__":
    unittest.main()
