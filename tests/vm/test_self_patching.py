"""Guests that change their own code before and while we trace: kprobes, ftrace, static keys.

The guest's health is its own word (dmesg), the counts are the workload's.
"""

import re
import unittest

import ringside
from guest import NO_NAMES, PATIENT, images_folder
from made_images import Archive, image_with

TROUBLE = r"BUG:|Oops|WARNING:|Call Trace|int3:|general protection|ftrace failed"
TRACING = "/sys/kernel/tracing"
# Each call of a function is counted where it begins and where it ends.
COUNT = ('fbt::{0}:entry /execname == "workload"/ {{ @{0}_in = count(); }}'
         ' fbt::{0}:return /execname == "workload"/ {{ @{0}_out = count(); }}')
READS = (COUNT.format("vfs_read") +
         ' fbt::vfs_read:return /execname == "workload"/ { @bytes = sum(arg1); }'
         ' END { printa("<in> %@d\\n", @vfs_read_in); printa("<out> %@d\\n", @vfs_read_out);'
         ' printa("<bytes> %@d\\n", @bytes); }')
READ = "workload --reads 1000 --read-size 100"
# Every place of vfs_read where the kernel lets a kprobe stand: it refuses what is no instruction.
EVERYWHERE = (f"n=0; while [ $n -lt 400 ]; do echo p:ours/at$n vfs_read+$n;"
              f" n=$((n + 1)); done | while read line; do"
              f" echo $line 2>/dev/null >>{TRACING}/kprobe_events; done;"
              f" for i in {TRACING}/events/ours/at*; do echo 1 >$i/enable || echo refused; done")
NO_KPROBES = f"echo 0 >{TRACING}/events/ours/enable; echo >{TRACING}/kprobe_events"
# Optimising begins some jiffies after the last change.
OPTIMISED = ("until grep -q OPTIMIZED /sys/kernel/debug/kprobes/list; do usleep 10000; done")
# A restless guest does this all the time, each as long as /tmp/restless is there: static keys of
# the scheduler and of all its tracepoints, and ftrace.
RESTLESS = {
    "keys": "echo 1 >/proc/sys/kernel/sched_schedstats; echo 0 >/proc/sys/kernel/sched_schedstats",
    "events": f"echo 1 >{TRACING}/events/sched/enable; echo 0 >{TRACING}/events/sched/enable",
    "ftrace": f"echo 'vfs_*' >{TRACING}/set_ftrace_filter; echo function >{TRACING}/current_tracer;"
              f" echo nop >{TRACING}/current_tracer",
}
CALM = "rm /tmp/restless; until [ ! -e /tmp/keys -a ! -e /tmp/events -a ! -e /tmp/ftrace ]; do" \
       " usleep 10000; done"
BY_BREAKPOINT = "echo 0 >/proc/sys/debug/kprobes-optimization"


def set_kprobes(places):
    """Commands that set kprobes at these offsets in vfs_read."""
    return (f"for n in {' '.join(map(str, places))}; do echo p:ours/at$n vfs_read+$n"
            f" >>{TRACING}/kprobe_events || echo refused; done;"
            f" echo 1 >{TRACING}/events/ours/enable")


def restless_image(image, loops):
    """The environment in which `image` is one that runs these commands from its boot on."""
    init = (images_folder() / "../../images/init").resolve().read_text()
    background = "".join(
        f"touch /tmp/{name}; (while [ -e /tmp/restless ]; do {commands}; usleep 100000; done;"
        f" rm /tmp/{name}) >/dev/null 2>&1 &\n" for name, commands in loops.items())
    archive = Archive()
    archive.file("init", init.replace(
        "exec /bin/console", f"{NO_NAMES}; touch /tmp/restless\n{background}exec /bin/console").encode(),
        0o755)
    return image_with(image, archive)


class SelfPatching:
    """The tests; the classes at the end say on which guest."""

    image = ""
    found = None  # boundaries()

    def trace(self, program, commands, *, append="", environment=None, cpus=2):
        """Runs commands in a guest that must be well afterwards; returns the outcome."""
        command = "; ".join([NO_NAMES, *commands, "echo '<dm''esg>'; dmesg; echo '</dm''esg>'"])
        options = ["-q", "--append", f"{PATIENT} {append}"]
        outcome = ringside.run(program, image=self.image, cpus=cpus, command=command,
                               options=options, environment=environment)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertNotRegex(outcome.section("dmesg").stdout, TROUBLE)
        return outcome

    def boundaries(self):
        """Offsets of vfs_read's instructions, as the kernel sees them, and of its ways out."""
        tests = type(self)
        tests.found = tests.found or self.find_boundaries()
        return tests.found

    def find_boundaries(self):
        """They depend on the kernel alone."""
        outcome = self.trace(
            "fbt::vfs_read:return { @ways[arg0] = count(); }"
            ' END { printa("<way> %d %@d\\n", @ways); }',
            [EVERYWHERE, READ, "ls -d /sys/kernel/tracing/events/ours/at*"])
        ways = [int(way) for way in re.findall(r"<way> (\d+)", outcome.stdout)]
        places = sorted(int(place) for place in re.findall(r"/ours/at(\d+)", outcome.stdout))
        self.assertGreater(len(places), 40, outcome)
        return places, ways

    def ours(self):
        """Where probes of ours stand in vfs_read, and the places that are no nearer than a jump."""
        places, ways = self.boundaries()
        ours = [min(place for place in places if place >= 5), *ways]
        beside = [place for place in places if not any(at - 5 < place <= at for at in ours)]
        self.assertGreater(len(beside), 20, places)
        return places, ours, beside

    def kprobes_at_boot(self):
        """A kernel parameter with kprobes in vfs_read, with room between them for a jump, and clear
        of where its entry and its ways out are."""
        places, ways = self.boundaries()
        chosen = []
        for place in places:
            near = any(way - 8 <= place <= way for way in [places[0] + 5, *ways])
            if place > 12 and not near and (not chosen or place - chosen[-1] >= 12):
                chosen.append(place)
        self.assertGreater(len(chosen), 10, places)
        return "kprobe_event=" + ";".join(f"p,vfs_read+{place}" for place in chosen)

    def check_reads(self, outcome, reads):
        counts = outcome.counts()
        self.assertEqual((counts["<in>"], counts["<out>"]), (reads, reads), outcome)
        self.assertEqual(counts["<bytes>"], 100 * reads, outcome)

    def test_kprobes_that_were_there_before_us(self):
        append = self.kprobes_at_boot()

        outcome = self.trace(
            READS, [OPTIMISED, READ, BY_BREAKPOINT, READ,
                    f"echo hits $(head -n 1 {TRACING}/kprobe_profile)",
                    f"echo 0 >{TRACING}/events/kprobes/enable; echo >{TRACING}/kprobe_events",
                    "wc -l </sys/kernel/debug/kprobes/list", READ], append=append)

        self.check_reads(outcome, 3000)
        self.assertRegex(outcome.stdout, r"hits p_vfs_read_\d+ [1-9]\d{3}")
        self.assertIn("\n0\n", outcome.stdout, "the last kprobe is gone")

    def test_kprobes_that_come_and_go_beside_ours(self):
        _, _, beside = self.ours()
        kprobes = set_kprobes(beside)

        outcome = self.trace(
            READS, [kprobes, READ, OPTIMISED, READ, BY_BREAKPOINT, READ, NO_KPROBES, READ,
                    kprobes, READ, NO_KPROBES, READ])

        self.check_reads(outcome, 6000)
        self.assertNotIn("refused", outcome.stdout)
        self.assertNotIn("gone", outcome.stderr)
        self.assertRegex(outcome.stderr, r"the guest set \d+ kprobes at vmlinux`vfs_read\+0x\w+ and "
                                         r"elsewhere; our probes in the same function were away")

    def test_the_guest_may_set_kprobes_where_it_may_without_us(self):
        places, _ = self.boundaries()

        outcome = self.trace(READS, [EVERYWHERE, f"ls -d {TRACING}/events/ours/at*"])

        accepted = sorted(int(place) for place in re.findall(r"/ours/at(\d+)", outcome.stdout))
        self.assertEqual(accepted, places, "not in the middle of what our int3s replaced")

    def test_a_kprobe_takes_the_place_of_a_probe_of_ours(self):
        """Ours there goes, which is told; the guest's counts, and those beside it, are exact."""
        _, ours, _ = self.ours()
        enable = f"echo 'comm == \"workload\"' >{TRACING}/events/ours/filter"

        outcome = self.trace(
            READS + COUNT.format("vfs_write") +
            ' END { printa("<writes> %@d\\n", @vfs_write_in);'
            ' printa("<written> %@d\\n", @vfs_write_out); }',
            [READ, set_kprobes(ours[:1]), enable, "workload --reads 500 --writes 50",
             f"echo 0 >{TRACING}/tracing_on", f"echo hits $(grep -c ' at{ours[0]}:' {TRACING}/trace)", NO_KPROBES,
             "workload --reads 100 --writes 7"])

        counts = outcome.counts()
        self.assertEqual(counts["hits"], 500, outcome)
        self.assertEqual((counts["<in>"], counts["<out>"]), (1000, 1600), outcome)
        # Each of the three reports is a write, too.
        self.assertEqual((counts["<writes>"], counts["<written>"]), (60, 60), outcome)
        self.assertRegex(outcome.stderr, rf"vfs_read\+{ours[0]:#x}, or has a kprobe of its own "
                                         "there; the probe there is gone")

    def check_ftrace_on_and_off(self, tracer, cpus):
        outcome = self.trace(READS, [
            f"echo vfs_read >{TRACING}/set_ftrace_filter; echo {tracer} >{TRACING}/current_tracer", READ,
            f"echo 0 >{TRACING}/tracing_on; grep -c vfs_read {TRACING}/trace",
            f"echo nop >{TRACING}/current_tracer", READ], cpus=cpus)

        self.check_reads(outcome, 2000)
        seen = [int(count) for count in re.findall(r"^(\d+)$", outcome.stdout, re.M)]
        self.assertEqual(len(seen), 1, outcome)
        self.assertGreater(seen[0], 999, "the guest's own tracer saw them too")

    def test_ftrace_on_and_off_while_we_trace(self):
        self.check_ftrace_on_and_off("function", 2)

    # On one CPU, as it switches the scheduler's static keys: with two, QEMU 7.2 now and then executes a
    # jump label's int3 that is gone, traced or not (images/README.md). So do the next two.
    def test_function_graph_on_and_off_while_we_trace(self):
        self.check_ftrace_on_and_off("function_graph", 1)

    def test_the_guests_function_graph_of_everything(self):
        # Its own returns go by a trampoline on the stack, and so do those of functions that we trace.
        outcome = self.trace(READS, [
            READ, f"echo function_graph >{TRACING}/current_tracer", READ,
            f"echo 0 >{TRACING}/tracing_on", f"grep -c '' {TRACING}/trace",
            f"echo nop >{TRACING}/current_tracer", READ], cpus=1)

        self.check_reads(outcome, 3000)
        seen = [int(count) for count in re.findall(r"^(\d+)$", outcome.stdout, re.M)]
        self.assertGreater(min(seen), 1000, "the guest's own tracer ran")

    def test_all_of_fbt_in_a_guest_that_patches_itself_all_the_time(self):
        with restless_image(self.image, RESTLESS) as environment:
            outcome = self.trace(
                READS + " fbt:::entry { @all = count(); }",
                [READ, CALM, READ], environment=environment, cpus=1)

        self.check_reads(outcome, 2000)

    def test_kprobes_that_come_and_go_while_we_attach(self):
        places, ways = self.boundaries()
        middle = [place for place in places
                  if place > 20 and not any(way - 8 <= place <= way for way in ways)]
        kprobes = "; ".join(f"echo p:ours/at{place} vfs_read+{place} >>{TRACING}/kprobe_events"
                            for place in middle[:40:2])
        loop = {"kprobes": f"{kprobes}; echo 1 >{TRACING}/events/ours/enable; usleep 50000;"
                           f" {NO_KPROBES}"}
        with restless_image(self.image, loop) as environment:
            outcome = self.trace(
                READS, [READ, "rm /tmp/restless; until [ ! -e /tmp/kprobes ]; do usleep 10000; done",
                        READ], environment=environment)

        # Of the first, those are lost that came while the kernel looked at the text; this is told.
        for calls in (outcome.counts()["<in>"], outcome.counts()["<out>"]):
            self.assertGreaterEqual(calls, 1000, outcome)
            self.assertLessEqual(calls, 2000, outcome)
            if calls < 2000:
                self.assertIn("were away for it", outcome.stderr)

    def test_a_stack_ends_where_a_kretprobe_has_taken_over_the_return(self):
        outcome = self.trace(
            'fbt::rw_verify_area:entry /execname == "workload"/ { @[stack()] = count(); }',
            [f"echo r:ours/at0 vfs_read >{TRACING}/kprobe_events",
             f"echo 1 >{TRACING}/events/ours/enable", "workload --reads 5", NO_KPROBES,
             "workload --reads 7"])

        stacks = re.split(r"\n\n", outcome.stdout)
        taken = [stack for stack in stacks if "`arch_rethook_trampoline" in stack]
        whole = [stack for stack in stacks if "`vfs_read" in stack and stack not in taken]
        self.assertEqual((len(taken), len(whole)), (1, 1), outcome)
        self.assertRegex(taken[0], r"`vfs_read\+\S+\n.*`arch_rethook_trampoline\S*\n +5$")
        self.assertRegex(whole[0], r"`ksys_read(.|\n)*`do_syscall_64(.|\n)*\n +7$")

    def test_every_function_that_is_entered_returns(self):
        outcome = self.trace(
            'syscall::lseek:entry /execname == "workload"/ { self->on = 1; }'
            " fbt:::entry /self->on/ { @in[probefunc] = count(); }"
            " fbt:::return /self->on/ { @out[probefunc] = count(); }"
            ' syscall::getppid:entry /execname == "workload"/ { self->on = 0; }'
            ' END { printa("<in> %s %@d\\n", @in); printa("<out> %s %@d\\n", @out); }',
            ["workload --reads 300 --writes 100 --opens 100 --getppid 1"])

        counts = outcome.counts()
        entered = {name[5:]: n for name, n in counts.items() if name.startswith("<in> ")}
        returned = {name[6:]: n for name, n in counts.items() if name.startswith("<out> ")}
        listing = ringside.run(None, image=self.image, options=["-l", "-n", "fbt:vmlinux::return"])
        traced = {line.split()[3] for line in listing.stdout.splitlines() if " return" in line}
        different = {name: (n, returned.get(name, 0)) for name, n in entered.items()
                     if name in traced and returned.get(name, 0) != n}
        # The call that ends it is entered and never seen to return. Its name is that of its aliases.
        self.assertEqual({name for name in different if not name.endswith("_sys_getppid")}, set(),
                         different)
        self.assertGreater(len(entered), 100, outcome)
        self.assertEqual((entered["vfs_read"], entered["vfs_write"]), (300, 100), outcome)


class Bpf:
    """bpftrace in the guest, by its kprobe, kretprobe and trampoline, beside ours."""

    image = ""

    def setUp(self):
        if not (images_folder() / self.image).exists():
            self.skipTest("needs images/build --compare")

    def test_bpf_on_and_off_while_we_trace(self):
        probes = ["kprobe:vfs_read", "kretprobe:vfs_read", "kfunc:vfs_read", "kretfunc:vfs_read"]
        script = "; ".join(f"{probe} /comm == \"workload\"/ {{ @n[\"{probe}\"] = count(); }}"
                           for probe in probes).replace("};", "}")
        commands = [READ, f"bpftrace -q -c '{READ}' -e '{script}'", READ]
        outcome = ringside.run(
            READS, image=self.image, cpus=2, command="; ".join([*commands, "dmesg | tail -n 40"]),
            options=["-q", "--memory", "1G", "--append", PATIENT])

        self.assertEqual(outcome.status, 0, outcome)
        self.assertNotRegex(outcome.stdout, TROUBLE)
        counts = outcome.counts()
        self.assertEqual((counts["<in>"], counts["<out>"]), (3000, 3000), outcome)
        for probe in probes:
            self.assertEqual(counts[f"@n[{probe}]:"], 1000, (probe, outcome))


globals().update(ringside.on_each(SelfPatching))
globals().update(ringside.on_each(Bpf, [("compare-6.1",), ("compare-6.12",)], "Bpf_"))

if __name__ == "__main__":
    unittest.main()
