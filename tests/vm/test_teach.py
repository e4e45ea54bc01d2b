"""The kernel for teaching by itself, under QEMU: it boots, counts right, and has its race.

Does not: trace it (tests/nested does).
"""

import os
import re
import subprocess
import unittest

import guest


def boot(cpus, arguments):
    """Boots the kernel; returns what it prints until it powers itself off."""
    done = subprocess.run(
        [os.environ.get("RINGSIDE_QEMU", "qemu-system-x86_64"), "-accel", "tcg,thread=multi",
         "-cpu", guest.CPU, "-smp", str(cpus), "-m", "64", "-nodefaults", "-display", "none",
         "-no-reboot", "-serial", "stdio", "-append", arguments, "-kernel",
         str(guest.images_folder() / "teach/vmlinux")],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=guest.TIMEOUT, check=True)
    return done.stdout.decode(errors="replace").replace("\r", "")


class Teach(unittest.TestCase):
    def check(self, cpus, arguments):
        """Boots it, checks all that must always be so; returns balance and what was paid in."""
        text = boot(cpus, arguments)
        self.assertIn(f"teach: hello\nteach: CPUs: {cpus}\n", text)
        self.assertEqual(text.count("teller: done\n"), 2, text)
        self.assertEqual(text.count("auditor: done\n"), 1, text)
        self.assertTrue(text.endswith("teach: bye\n"), text)
        balance, paid = map(int, re.search(r"balance (\d+) of (\d+)", text).groups())
        self.assertLessEqual(balance, paid)
        return balance, paid

    def test_one_cpu_loses_nothing(self):
        self.assertEqual(self.check(1, "deposits=5000"), (10000, 10000))

    def test_careful_cpus_lose_nothing(self):
        self.assertEqual(self.check(2, "careful"), (200000, 200000))
        self.assertEqual(self.check(4, "careful deposits=1000"), (2000, 2000))

    def test_two_cpus_race_sooner_or_later(self):
        for _ in range(20):
            balance, paid = self.check(2, "deposits=1000000")
            if balance < paid:
                return
        self.fail("no deposit was lost in 20 runs of two million")


if __name__ == "__main__":
    unittest.main()
