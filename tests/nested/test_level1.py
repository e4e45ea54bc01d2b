"""Level 1 itself: its KVM is the kernel's own, and our programs run in it."""

import unittest

import nested


class Genuine(nested.TestCase):
    def test_kvm_amd_is_there_with_nested_paging(self):
        outcome = self.run_in_level1("dmesg; cat /sys/module/kvm_amd/parameters/npt; ls /dev/kvm")

        self.assertIn("SVM: kvm: Nested Paging enabled", outcome.stdout)
        self.assertRegex(outcome.stdout, r"(?m)^[1Y]\n/dev/kvm$")

    def test_nothing_runs_on_the_first_cpu_but_what_has_to(self):
        outcome = self.run_in_level1("cat /sys/devices/system/cpu/isolated;"
                                     " grep Cpus_allowed_list /proc/self/status")

        self.assertEqual(outcome.stdout.split(), ["0", "Cpus_allowed_list:", "1-2"])

    def test_a_command_ends_with_status_output_and_errors_apart(self):
        outcome = self.run_in_level1("echo out; echo err >&2; exit 3", status=3)

        self.assertEqual((outcome.stdout, outcome.stderr), ("out\n", "err\n"))

    def test_a_command_that_takes_too_long_is_killed(self):
        with self.assertRaisesRegex(AssertionError, "not at its end after 1 s: echo begun"):
            nested.level1().run("echo begun; sleep 1000", timeout=1)

        self.run_in_level1("pidof sleep", status=1)


class Ringside(nested.TestCase):
    def test_d_runs_without_a_guest(self):
        outcome = self.run_in_level1(
            "/ringside/ringside -qn 'BEGIN { printf(\"%d\\n\", 6 * 7); exit(0); }'")

        self.assertEqual((outcome.stdout.strip(), outcome.stderr), ("42", ""))


if __name__ == "__main__":
    unittest.main()
