"""Probes that are jumps instead of breakpoints: what D sees is the same.

The counts are the workload's.
"""

import re
import signal
import unittest

import ringside
from guest import NO_NAMES
from made_images import image_with_programs
from test_attach_ends import EndCase, clean, patient
from test_attach_qmp import begin, end, started
from test_self_patching import NO_KPROBES, TRACING, TROUBLE

READS = 500
# rw_verify_area() has its entry from vfs_read() alone, for what is traced.
PROGRAM = """
    fbt::vfs_read:entry /execname == "workload"/ { self->size = arg2; @in = count(); }
    fbt::rw_verify_area:entry /self->size/ {
      @checked[stack(2)] = count(); @callers[func(caller)] = count();
      @ips[regs[R_RIP] - (uint64_t)&vmlinux`rw_verify_area < 64] = count();
    }
    fbt::vfs_read:return /self->size/ {
      @out = count(); @bytes = sum(self->size); @short = sum(self->size - arg1); self->size = 0;
    }
    END {
      printa("<in> %@d\\n", @in); printa("<out> %@d\\n", @out); printa("<bytes> %@d\\n", @bytes);
      printa("<short> %@d\\n", @short); printa("<caller> %a %@d\\n", @callers);
      printa("<stack>%k%@d\\n</stack>\\n", @checked);
      printa("<ips> %d %@d\\n", @ips);
    }"""


class Jumps(unittest.TestCase):
    """The same program by breakpoints and by jumps."""

    def trace(self, image, cpus, options):
        """The program's counts, and how many places were jumps."""
        outcome = ringside.run(PROGRAM, image=image, cpus=cpus,
                               command=f"workload --reads {READS} --read-size 100; dmesg",
                               options=["-q", "-v", *options])
        self.assertEqual(outcome.status, 0, outcome)
        self.assertNotRegex(outcome.stdout, TROUBLE)
        self.assertRegex(outcome.stderr, "; 0 missed, 0 drops")
        jumps = re.search(r"places armed, (\d+) by jumps;", outcome.stderr)
        printed = outcome.stdout[outcome.stdout.rindex("<in>"):]
        return printed, int(jumps[1]) if jumps else 0

    def test_what_a_program_sees_is_the_same(self):
        for image, cpus in [*ringside.GUESTS, ("debian-6.12", 4)]:
            with self.subTest(image, cpus=cpus):
                by_breakpoints, none = self.trace(image, cpus, ["-x", "jumpprobes=no"])
                by_jumps, jumps = self.trace(image, cpus, [])
                self.assertEqual(none, 0)
                self.assertGreaterEqual(jumps, 2)
                self.assertEqual(by_jumps, by_breakpoints)
                for counted in (f"<in> {READS}\n", f"<out> {READS}\n", f"<bytes> {100 * READS}\n",
                                "<short> 0\n", f"<caller> vmlinux`vfs_read {READS}\n",
                                "vmlinux`vfs_read+", f"<ips> 1 {READS}\n"):
                    self.assertIn(counted, by_jumps)


class HardwareBreakpoints(unittest.TestCase):
    """The guest sets hardware breakpoints on instructions that a jump has displaced."""

    def test_they_stop_there_as_without_us(self):
        for image, cpus in ringside.GUESTS:
            with self.subTest(image, cpus=cpus):
                environment = self.enterContext(image_with_programs(image, "hardware"))
                listed = ringside.run("instr:vmlinux:vfs_read:", image=image,
                                      options=["-l"], environment=environment)
                offsets = sorted(int(offset, 16) for offset in
                                 re.findall(r"vfs_read +[a-z]+-([0-9a-f]+)$", listed.stdout, re.M))
                places = [offset for offset in offsets if 4 < offset < 24]
                self.assertGreater(len(places), 4, listed)
                address = ("base=0x$(sed -n 's/ T vfs_read$//p' /proc/kallsyms); " + "hardware 100 " +
                           " ".join(f"$(printf %x $((base + {place})))" for place in places))
                outcome = ringside.run('fbt::vfs_read:entry /execname == "hardware"/ { @ = count(); }'
                                       ' END { printa("<in> %@d\\n", @); }',
                                       image=image, cpus=cpus, environment=environment,
                                       command=address + "; dmesg", options=["-q", "-v"])
                self.assertEqual(outcome.status, 0, outcome)
                self.assertRegex(outcome.stderr, r"places armed, \d+ by jumps;")
                # Each is read once itself, which the next one is closed for.
                hits = [int(count) for count in re.findall(r"^hits (\d+)$", outcome.stdout, re.M)]
                self.assertEqual(hits, [101] * len(places), outcome)
                self.assertIn(f"<in> {101 * len(places)}\n", outcome.stdout)
                self.assertNotRegex(outcome.stdout, TROUBLE)


# Where its jump stands: the first instruction behind what the guest's own tracers patch.
PLACE = begin("fbt::vfs_read:entry, fbt::vfs_write:entry"
              " { printf(\"at %d\\n\", regs[R_RIP] - (uint64_t)&vmlinux`vfs_read); }")
READ = "workload --reads 100 --read-size 100"
WRITE = "workload --writes 100"


class LeftBehind(EndCase):
    """Jumps of a ringside that was killed, or is stopped."""

    def run_in(self, machine, *commands):
        status, said = machine.port.run("; ".join(commands))
        self.assertEqual(status, 0, said)
        return said.decode()

    def test_what_outlives_us_has_breakpoints_unless_jumps_are_asked_for(self):
        with patient("debian-6.12") as machine:
            for options, armed in (([], r"\d+ places armed;"),
                                   (["-x", "jumpprobes"], r"places armed, \d+ by jumps;")):
                with self.subTest(options), machine.trace(PLACE, ["-v", *options]) as running:
                    started(running)
                    self.assertRegex(end(running).stderr, armed)

    def place(self, machine, running):
        """Of the jump in vfs_read."""
        started(running)
        self.run_in(machine, READ)
        text = running.read_until(lambda text: re.search(r"^at \d{1,2}\n", text, re.M))
        return int(re.search(r"^at (\d{1,2})\n", text, re.M)[1])

    def set_kprobe(self, machine, place, event="at", work=READ):
        """How often it was hit by what the workload does."""
        said = self.run_in(machine, NO_NAMES, f"echo 'p:ours/{event} {place}' >>{TRACING}/kprobe_events",
                           f"echo 'comm == \"workload\"' >{TRACING}/events/ours/{event}/filter",
                           f"echo 1 >{TRACING}/events/ours/{event}/enable", work,
                           f"echo hits $(grep -c ' {event}:' {TRACING}/trace)")
        return int(re.search(r"hits (\d+)\n", said)[1])

    def check_leaving(self, machine):
        """The kprobe goes, then all of ours, and the guest is well."""
        said = self.run_in(machine, READ, NO_KPROBES, READ)
        self.assertEqual(said.count("read 100\n"), 2, said)
        cleaned = clean(machine)
        self.assertEqual(cleaned.status, 0, cleaned)
        self.check_well(machine)

    def test_the_stub_stays_for_a_kprobe_that_has_copied_a_jump(self):
        for image in ringside.IMAGES:
            with self.subTest(image), patient(image) as machine:
                with machine.trace(PLACE, ["-q", "-x", "jumpprobes"]) as running:
                    place = self.place(machine, running)
                    running.process.kill()
                    running.process.wait()
                    self.assertEqual(ringside.wait_for_end(running.mark), [])

                hits = self.set_kprobe(machine, f"vfs_read+{place}")
                kept = clean(machine)

                self.assertEqual(hits, 100)
                self.assertEqual(kept.status, 1, kept)
                self.assertIn("1 breakpoints of an earlier ringside cannot be taken out", kept.stderr)
                self.check_leaving(machine)

    @ringside.takes_long
    def test_a_kprobe_comes_while_ringside_is_stopped_and_cannot_make_way(self):
        for image in ringside.IMAGES:
            with self.subTest(image), patient(image) as machine:
                # Each of these is a breakpoint, as there is one in the next five bytes.
                beside = "instr:vmlinux:vfs_write: { @writes = count(); }"
                with machine.trace(f"{PLACE} {beside}", ["-q", "-x", "jumpprobes"]) as running:
                    place = self.place(machine, running)
                    running.process.send_signal(signal.SIGSTOP)
                    hits = self.set_kprobe(machine, f"vfs_read+{place}")
                    running.process.send_signal(signal.SIGCONT)
                    self.run_in(machine, READ)
                    outcome = end(running)

                self.assertEqual(hits, 100)
                # The kprobe holds our jump for the guest's own code, so it stays.
                self.assertEqual(outcome.status, 1, outcome)
                self.assertRegex(outcome.stderr, r"vfs_read\+0x[0-9a-f]+, or has a kprobe of its own there")
                self.assertIn("so the stub stays in the guest", outcome.stderr)
                # Where a probe of ours stood a kprobe is the guest's.
                self.assertGreaterEqual(self.set_kprobe(machine, f"vfs_write+{place}", "then", WRITE), 100)
                self.check_leaving(machine)


if __name__ == "__main__":
    unittest.main()
