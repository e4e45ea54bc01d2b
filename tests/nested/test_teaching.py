"""The kernel for teaching: any number of probes stands from its first instruction on, and each call
is counted. KVM is kvm_amd, to which an int3 of the guest is not shown."""

import re
import unittest

import nested

DEPOSITS = 10  # of each of two tellers
# Each teller: its deposits, a write, an exit. The auditor: 3 looks, 3 yields, a write, an exit.
CALLS = 2 * (DEPOSITS + 2) + 8
EXITS = 3


class Teaching(nested.TestCase):
    """One boot a test."""

    def counts(self, cpus, probes):
        """How often each function was met."""
        outcome = self.run_in_level1(
            f"/ringside/ringside --machine kvm --image teach --cpus {cpus}"
            f" -x bootargs=deposits={DEPOSITS} -qn '"
            f'{probes} {{ @[probefunc] = count(); }} END {{ printa("<%s %@d>\\n", @); }}\'')
        found = {name: int(count) for name, count in re.findall(r"<(\w+) (\d+)>", outcome.stdout)}
        self.assertTrue(found, outcome)
        return found

    def check(self, found, expected):
        self.assertEqual({name: found.get(name) for name in expected}, expected)

    def test_every_entry_from_the_first_instruction_on(self):
        self.check(self.counts(2, "fbt:::entry"),
                   {"pvh_entry": 1, "to_long_mode": 2, "kernel_main": 1, "other_cpu_main": 1,
                    "cpu_start": 2, "map_user_page": 6, "new_page": 15, "deposit": 2 * DEPOSITS,
                    "system_call_entry": CALLS, "system_call": CALLS, "kernel_end": 1,
                    "teller": None})

    def test_every_return(self):
        self.check(self.counts(2, "fbt:::return"),
                   {"to_long_mode": 2, "cpu_start": 2, "map_user_page": 6, "new_page": 15,
                    "deposit": 2 * DEPOSITS, "write_balance": 2 * DEPOSITS,
                    "system_call": CALLS - EXITS, "kernel_main": None, "task_exit": None})


if __name__ == "__main__":
    unittest.main()
