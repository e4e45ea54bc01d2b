"""Kernels of Debian traced from their first instruction on our own VMM, where KVM is kvm_amd."""

import re
import unittest

import nested

RINGSIDE = "/ringside/ringside --machine kvm"
INITCALLS = """
fbt::do_one_initcall:entry { self->t = timestamp; self->f = arg0; @in = count(); }
fbt::do_one_initcall:return /self->t/ {
  printf("%d us %a\\n", (timestamp - self->t) / 1000, self->f); self->t = 0; @out = count(); }
fbt::run_init_process:entry { exit(0); }
END { printa("<in %@d>\\n", @in); printa("<out %@d>\\n", @out); }"""
# Where linux_banner lies says by how much the kernel moved.
SLIDE = """
fbt::start_kernel:entry { printf("<at %x>\\n", (uint64_t)&`linux_banner); @ = count(); }
fbt::notify_cpu_starting:entry { printf("<cpu %d>\\n", cpu); }
vm::pio:out /args[0] == 0x3f8/ { @words[stack(1)] = count(); }
profile-97 /arg0 >= 0xffffffff80000000 && arg0 < 0xffffffffc0000000/ {
  @samples[cpu, func(arg0)] = count(); }
fbt::run_init_process:entry { exit(0); }
END { printa("<start %@d>\\n", @); printa(@words);
  printa("<CPU %d in %a>\\n", @samples); }"""


class BootTracing(nested.TestCase):
    """One boot a test, or as many as its name says."""

    def trace(self, options, program, status=0):
        return self.run_in_level1(f"{RINGSIDE} {options} -qn '{program}'", status)

    def check_initcalls(self, options):
        """Every initcall is named, and each that began has come to its end."""
        outcome = self.trace(options, INITCALLS)

        names = re.findall(r"(?m)^\d+ us vmlinux`(\w+)$", outcome.stdout)
        self.assertGreater(len(names), 300, outcome)
        self.assertIn("pci_subsys_init", names, outcome)
        begun, ended = (int(re.search(rf"<{word} (\d+)>", outcome.stdout)[1])
                        for word in ("in", "out"))
        self.assertEqual((begun, ended), (len(names), len(names)), outcome)

    def test_initcalls_of_6_1_on_two_cpus(self):
        self.check_initcalls("--image debian-6.1 --cpus 2")

    def test_initcalls_of_6_12(self):
        self.check_initcalls("--image debian-6.12")

    def test_initcalls_of_a_6_1_that_moved_itself(self):
        self.check_initcalls("--image debian-6.1 --boot bzimage")

    def check_slides(self, image, cpus):
        """Two boots by the kernel's own protocol: two places, one start_kernel each, and what the
        host sees has the kernel's names."""
        places = []
        for _ in range(2):
            outcome = self.trace(f"--image {image} --boot bzimage --cpus {cpus}", SLIDE)
            self.assertIn("<start 1>\n", outcome.stdout, outcome)
            self.assertEqual(re.findall(r"<cpu (\d)>", outcome.stdout),
                             [str(cpu) for cpu in range(1, cpus)], outcome)
            self.assertRegex(outcome.stdout, r" vmlinux`io_serial_out\+0x\w+\n +[1-9]", outcome)
            samples = re.findall(r"<CPU (\d) in (\S+)>", outcome.stdout)
            self.assertEqual(len({cpu for cpu, _ in samples}), cpus, outcome)
            self.assertEqual([name for _, name in samples if not name.startswith("vmlinux`")], [],
                             outcome)
            places.append(int(re.search(r"<at (\w+)>", outcome.stdout)[1], 16))

        self.assertNotEqual(places[0], places[1])
        # By 2 MiB or a multiple: CONFIG_PHYSICAL_ALIGN.
        self.assertEqual((places[0] - places[1]) % (2 << 20), 0, places)

    def test_two_boots_of_6_1_on_two_cpus_move_differently(self):
        self.check_slides("debian-6.1", 2)

    def test_two_boots_of_6_12_move_differently(self):
        self.check_slides("debian-6.12", 1)

    def test_a_kernel_without_init_dies_with_its_last_probes(self):
        outcome = self.trace("--kernel /ringside/images/debian-6.1/vmlinuz",
                             "fbt::start_kernel:entry { } fbt::panic:entry { }", status=1)

        self.assertIn("Kernel panic - not syncing", outcome.stderr, outcome)
        self.assertRegex(outcome.stderr, r"the last probes that fired, the very last first:"
                                         r" fbt:vmlinux:panic:entry, fbt:vmlinux:start_kernel:entry")

    def functions(self, options):
        """The functions of the kernel itself with an entry probe, of those that begin with an s and
        have an ftrace site: a kernel's file alone does not say which others may have one."""
        outcome = self.run_in_level1(
            f"{RINGSIDE} --image debian-6.1 {options} -lvn 'fbt:vmlinux:s*:entry'")
        probes = re.split(r"(?m)^ *\d+ +fbt +vmlinux +", outcome.stdout)[1:]
        return {text.split()[0] for text in probes if "no ftrace site" not in text}

    def test_the_file_and_the_running_kernel_have_the_same_functions(self):
        of_file, running = self.functions(""), self.functions("--after-boot")

        self.assertGreater(len(running), 1000)
        self.assertIn("start_kernel", of_file - running)
        self.assertEqual(running - of_file, set())

    def memory(self, options, probe):
        """MiB that ringside holds beside the guest's RAM (a memfd) after the probe's first firing."""
        outcome = self.run_in_level1(f"""
            : >/tmp/out
            {RINGSIDE} {options} -qn '{probe} {{ printf("<fired>"); }}' >/tmp/out 2>&1 </dev/null &
            n=0; until grep -q "<fired>" /tmp/out || [ $n -ge 100 ]; do sleep 1; n=$((n + 1)); done
            awk '/^[0-9a-f]+-/ {{ ram = /memfd:/ }} /^Rss:/ && !ram {{ kib += $2 }}
                 END {{ print "<kib", kib ">" }}' /proc/$!/smaps
            kill $!; wait $!; cat /tmp/out""")
        self.assertIn("<fired>", outcome.stdout, outcome)
        return int(re.search(r"<kib (\d+)>", outcome.stdout)[1]) / 1024

    def test_at_most_20_mib_are_taken_beside_the_guests_ram(self):
        self.assertLess(self.memory("--image debian-6.1", "fbt::run_init_process:entry"), 20)
        self.assertLess(self.memory("--image debian-6.1 --after-boot", "BEGIN"), 20)


if __name__ == "__main__":
    unittest.main()
