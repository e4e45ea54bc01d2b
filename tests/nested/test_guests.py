"""Our own VMM with Debian's kernels, where KVM is kvm_amd: every way to boot, exact counts."""

import re
import unittest

import nested

RINGSIDE = "/ringside/ringside --machine kvm"


class Guests(nested.TestCase):
    """One boot a test, or as many as its name says."""

    def trace(self, options, program, command=None):
        """The outcome of a good run; `command` runs in the guest."""
        words = f"{RINGSIDE} {options} -qn '{program}'"
        return self.run_in_level1(f"{words} -c '{command}'" if command else words)

    def check_boot(self, image, boot, cpus):
        """The guest comes up as far as its command port and has its CPUs."""
        outcome = self.trace(f"--image {image} --boot {boot} --cpus {cpus}",
                             'END { printf("end\\n"); }', "nproc; uname -r")

        self.assertRegex(outcome.stdout, rf"(?m)^{cpus}\n{image.removeprefix('debian-')}\.", outcome)
        self.assertIn("end\n", outcome.stdout, outcome)

    def test_6_1_by_its_boot_protocol(self):
        self.check_boot("debian-6.1", "bzimage", 1)

    def test_6_1_by_pvh_on_two_cpus(self):
        self.check_boot("debian-6.1", "pvh", 2)

    def test_6_12_by_its_boot_protocol_on_two_cpus(self):
        self.check_boot("debian-6.12", "bzimage", 2)

    def test_6_12_by_pvh(self):
        self.check_boot("debian-6.12", "pvh", 1)

    def check_counts(self, cpus, channel):
        """Every call of the workload is recorded and counted, on entry and on return."""
        outcome = self.trace(
            f"--image debian-6.1 --cpus {cpus} -v -x channel={channel} -x record=yes",
            'fbt::vfs_read:entry /execname == "workload"/ { @in = count(); }'
            ' fbt::vfs_read:return /execname == "workload"/ { @out = count(); }'
            ' syscall::getppid:entry { @calls = count(); }'
            ' END { printa("<in %@d>\\n<out %@d>\\n<calls %@d>\\n", @in, @out, @calls); }',
            f"workload --reads 300 --getppid 200 --threads {cpus}")

        for words in (f"<in {300 * cpus}>", f"<out {300 * cpus}>", f"<calls {200 * cpus}>"):
            self.assertIn(words, outcome.stdout, outcome)
        recorded = re.search(r" (\d+) recorded", outcome.stderr)
        self.assertGreater(int(recorded[1]), 300 * cpus, outcome)  # some wait where a ring was full

    def test_counts_by_exits(self):
        self.check_counts(1, "exit")

    def test_counts_by_exits_on_two_cpus(self):
        self.check_counts(2, "exit")

    def test_counts_by_spinning(self):
        self.check_counts(1, "spin")

    def test_the_first_functions_of_a_boot(self):
        outcome = self.trace(
            "--image debian-6.1",
            'fbt::start_kernel:entry { printf("<first %d>\\n", cpu); }'
            ' fbt::kernel_init:entry { printf("<init>\\n"); }'
            ' fbt::run_init_process:entry { printf("<run>\\n"); exit(0); }')

        self.assertRegex(outcome.stdout, r"(?s)<first 0>\n.*<init>\n.*<run>\n", outcome)

    def test_the_host_sees_the_guest_leave(self):
        outcome = self.trace(
            "--image debian-6.1",
            'vm::exit:io { @exits = count(); } vm::pio:out /arg0 == 0x3f8/ { @bytes = count(); }'
            ' END { printa("<exits %@d>\\n<bytes %@d>\\n", @exits, @bytes); }',
            "echo hello >/dev/ttyS0")

        self.assertRegex(outcome.stdout, r"<exits [1-9]\d*>\n<bytes ([7-9]|\d\d+)>", outcome)

    def test_hvc0_shows_words_and_takes_keys(self):
        outcome = self.run_in_level1(f"""
            rm -f /tmp/keys; mkfifo /tmp/keys; : >/tmp/shown
            {RINGSIDE} --image debian-6.1 --console -x bootargs=console=hvc0 -qn 'BEGIN {{ }}' \\
                -c 'exec 4</dev/hvc0; echo listening >/dev/hvc0; read words <&4; echo "<$words>"' \\
                </tmp/keys 2>/tmp/shown & ringside=$!
            exec 3>/tmp/keys
            while ! grep -q listening /tmp/shown && kill -0 $ringside; do sleep 1; done
            echo some words >&3
            wait $ringside""")

        self.assertIn("<some words>\n", outcome.stdout, outcome)

    def test_cpuid_is_counted_and_only_the_idle_task_halts(self):
        outcome = self.trace(
            "--image debian-6.1",  # of several CPUs one that waits for a lock halts, too
            'BEGIN { begun = timestamp; }'
            ' vm::cpuid /args[0] == 0x5249/ { @asked[execname] = count(); }'
            ' vm:hlt:hlt { @halts[execname] = count(); @ns = sum(args[0]); }'
            ' END { printa("<%s asked %@d>\\n", @asked); printa("<%s halted>\\n", @halts);'
            ' printa("<for %@d", @ns); printf(" of %d>\\n", timestamp - begun); }',
            "sleep 1; workload --cpuid 200 --threads 2")

        self.assertEqual(re.findall(r"<(\w+) asked (\d+)>", outcome.stdout),
                         [("workload", "400")], outcome)
        self.assertEqual(re.findall(r"<(\S+) halted>", outcome.stdout), ["swapper/0"], outcome)
        asleep, all_time = map(int, re.search(r"<for (\d+) of (\d+)>", outcome.stdout).groups())
        # There is nothing else to do while the shell sleeps for a second.
        self.assertGreater(asleep, 500_000_000, outcome)
        self.assertLess(asleep, all_time, outcome)

    def test_profile_sees_the_workload(self):
        outcome = self.trace(
            "--image debian-6.1",
            'profile-499 /execname == "workload"/ { @ = count(); }'
            ' END { printa("<samples %@d>\\n", @); }',
            "workload --getppid 1000 --seconds 1")

        self.assertRegex(outcome.stdout, r"<samples [1-9]\d+>", outcome)


if __name__ == "__main__":
    unittest.main()
