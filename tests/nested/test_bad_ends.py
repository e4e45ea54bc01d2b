"""The user's view of a guest of our own VMM that ends badly, or cannot begin: the report of a
triple fault and of a panic where KVM is kvm_amd, and an initrd that is not whole."""

import base64
import gzip
import pathlib
import subprocess
import tempfile
import unittest

import nested

RINGSIDE = "/ringside/ringside --machine kvm"
# Without an IDT an invalid instruction is a triple fault.
CRASHER = """
static volatile int total;
__attribute__((noinline)) void step(int number) { total += number; }
__attribute__((noinline)) void crash(void) { __asm__ volatile("ud2"); }
void _start(void) { step(1); step(2); crash(); }
"""
REGISTERS = r"rip [0-9a-f]{16}  cs  \d{4}  rflags [0-9a-f]{8}\nrax [0-9a-f]{16}  rbx "


def kernel(source):
    """A plain ELF64 kernel of C code, loaded at 2 MiB."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "kernel")
        subprocess.run(["cc", "-x", "c", "-", "-o", path, "-O1", "-ffreestanding", "-nostdlib",
                        "-static", "-no-pie", "-fno-stack-protector", "-fcf-protection=none",
                        "-Wl,-Ttext=0x200000,--build-id=none"],
                       input=source, text=True, check=True)
        return path.read_bytes()


class BadEnds(nested.TestCase):
    def put(self, data, name):
        """Makes a small file in level 1."""
        text = base64.b64encode(gzip.compress(data)).decode()
        self.run_in_level1(f"echo {text} | base64 -d | gunzip >{name}")

    def test_a_triple_fault_shows_the_vcpu_and_the_last_probes(self):
        self.put(kernel(CRASHER), "/tmp/crasher")
        outcome = self.run_in_level1(
            f"{RINGSIDE} --kernel /tmp/crasher -qn 'fbt::step:entry, fbt::crash:entry"
            " { printf(\"<%s %d>\\n\", probefunc, arg0); }'", status=1)

        self.assertRegex(outcome.stdout, r"(?s)<step 1>\n.*<step 2>\n.*<crash \d+>\n", outcome)
        # The processor forgets the state; what is left is that of the exit before it.
        self.assertRegex(outcome.stderr, r"(?m)^ringside: tracing ended: kvm died: triple fault on"
                         r" vCPU 0; this CPU keeps no state of it; at the exit before it: rip"
                         r" 0{10}20[0-9a-f]{4}  cr3 [0-9a-f]{16}$", outcome)
        self.assertIn("ringside: the last probes that fired, the very last first:"
                      " fbt:kernel:crash:entry, fbt:kernel:step:entry, fbt:kernel:step:entry\n",
                      outcome.stderr, outcome)

    def test_a_panic_shows_registers_and_the_last_probes(self):
        outcome = self.run_in_level1(
            f"{RINGSIDE} --image debian-6.1 -qn 'fbt::panic:entry {{ }}'"
            " -c 'echo c >/proc/sysrq-trigger'", status=1)

        self.assertRegex(outcome.stderr, r"(?m)^ringside: tracing ended: the guest panicked: on"
                         r" vCPU 0; the last line of its console: .*Kernel panic - not syncing:"
                         r" sysrq triggered crash$", outcome)
        self.assertRegex(outcome.stderr, "ringside: " + REGISTERS, outcome)
        self.assertIn("the very last first: fbt:vmlinux:panic:entry", outcome.stderr, outcome)

    def test_an_initrd_that_is_not_whole_is_refused(self):
        image = "/ringside/images/debian-6.1"
        self.run_in_level1(f"gzip -1 -c {image}/initrd >/tmp/whole &&"
                           " head -c 100000 /tmp/whole >/tmp/cut")
        words = f"{RINGSIDE} --kernel {image}/vmlinuz -qn 'BEGIN {{}}' -c 'echo here' --initrd"
        refused = self.run_in_level1(f"{words} /tmp/cut", status=1)
        booted = self.run_in_level1(f"{words} /tmp/whole; rm /tmp/whole /tmp/cut")

        self.assertEqual(refused.stderr, "ringside: the initrd /tmp/cut is cut off after 100000"
                         " bytes: copy or build it again\n")
        self.assertIn("here\n", booted.stdout, booted)


if __name__ == "__main__":
    unittest.main()
