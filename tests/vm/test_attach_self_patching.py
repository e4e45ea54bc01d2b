"""Guests that somebody else started, and that set kprobes of their own while we are attached."""

import re
import unittest

import ringside
from guest import NO_NAMES, PATIENT
from test_attach_qmp import Case, Machine, begin, end, started
from test_self_patching import EVERYWHERE, NO_KPROBES, READS, TRACING, TROUBLE

READ = "workload --reads 100 --read-size 100"
LIST = f"ls -d {TRACING}/events/ours/at*"
COUNTED = f"echo 'comm == \"workload\"' >{TRACING}/events/ours/filter; {READ}"
# The byte of vfs_read at an offset, as /proc/kcore has it: an ELF core with a segment for the image.
KCORE = r"""kcore() {
  at=$((0x$(sed -n 's/ T vfs_read$//p' /proc/kallsyms) + $1)); n=0
  while [ $n -lt 16 ]; do
    set -- $(dd if=/proc/kcore bs=1 skip=$((64 + 56 * n)) count=56 2>/dev/null | od -A n -v -t x8)
    if [ $((at - 0x$3)) -ge 0 ] && [ $((at - 0x$3)) -lt $((0x$5)) ]; then
      echo "kcore" $(dd if=/proc/kcore bs=1 skip=$((0x$2 + at - 0x$3)) count=1 2>/dev/null |
                     od -A n -t x1)
      return
    fi
    n=$((n + 1))
  done
}"""


class SelfPatching(Case):
    def run_in(self, machine, *commands):
        status, said = machine.port.run("; ".join(commands))
        self.assertEqual(status, 0, said)
        return said.decode()

    def check(self, image, cpus):
        with Machine(image, cpus, append=PATIENT) as machine:
            alone = self.run_in(machine, NO_NAMES, EVERYWHERE, LIST, NO_KPROBES)
            places = [int(place) for place in re.findall(r"/ours/at(\d+)", alone)]
            entry = min(place for place in places if place >= 5)
            seen = f"echo hits $(grep -c ' at{entry}:' {TRACING}/trace); echo >{TRACING}/trace"
            kcore = f"{KCORE}; kcore {entry}"
            before = self.run_in(machine, "dmesg -c >/dev/null", kcore)

            with machine.trace(begin(READS), ["-q"]) as running:
                started(running)
                traced = self.run_in(machine, READ, kcore)
                beside = self.run_in(machine, EVERYWHERE, LIST, COUNTED, seen)
                outcome = end(running)
            after = self.run_in(machine, READ, seen, NO_KPROBES, READ, kcore, "dmesg")

            self.assertEqual(outcome.status, 0, outcome)
            counts = outcome.counts()
            self.assertEqual((counts["<in>"], counts["<out>"]), (100, 100), outcome)
            self.assertIn("the probe there is gone", outcome.stderr)
            accepted = [int(place) for place in re.findall(r"/ours/at(\d+)", beside)]
            self.assertEqual(accepted, places)
            for said in (beside, after):
                self.assertIn("hits 100\n", said, "the guest's kprobe in the place of our probe")
            self.assertRegex(before, "kcore [0-9a-f]{2}\n")
            self.assertRegex(traced, "kcore (cc|e9)\n")  # an int3, or a jump
            self.assertIn(re.search("kcore .*\n", before)[0], after)
            self.assertNotRegex(after, TROUBLE)
            self.check_left_alone(machine)

    def test_kprobes_while_we_are_attached_and_when_we_have_left(self):
        for image, cpus in ringside.GUESTS:
            with self.subTest(image, cpus=cpus):
                self.check(image, cpus)


if __name__ == "__main__":
    unittest.main()
