"""The programs that have to work, on every guest, with the workload's exact counts."""

import re
import unittest

import ringside


def last_words(outcome):
    """The last word of each line: what trace() printed beside the CPU and ID columns."""
    return [line.split()[-1] for line in outcome.stdout.splitlines() if line.split()]


class Programs:
    """The tests; the classes at the end say on which guest. One boot each."""

    image = ""
    cpus = 0

    def trace(self, program, command, *options):
        """Runs a program to the command's end, which has to be a good one."""
        outcome = ringside.run(program, image=self.image, cpus=self.cpus, command=command,
                               options=options)
        self.assertEqual(outcome.status, 0, outcome)
        return outcome

    def test_syscalls_match_to_the_last_call(self):
        outcome = self.trace(
            "syscall:::entry { @[execname, probefunc] = count(); }",
            "workload --reads 100 --writes 20 --opens 30 --getppid 1000 --tcp 5"
            " --processes 2 --threads 3")

        counts = outcome.counts()
        self.assertEqual(counts["getppid"], 6 * 1000, outcome)
        for name in ("read", "write", "openat", "close", "lseek", "getppid", "socket", "bind",
                     "listen", "connect", "accept4"):
            self.assertEqual(counts.get(f"workload {name}"), counts[name], (name, outcome))
        # The C library's own calls are known as well: 2 threads more in each of 2 processes.
        for name, count in (("clone3", 4), ("exit", 4), ("clone", 1), ("exit_group", 2)):
            self.assertEqual(counts.get(f"workload {name}"), count, (name, outcome))

    def test_quantize_of_read_sizes(self):
        outcome = self.trace(
            'fbt::vfs_read:entry /execname == "workload"/ { @ = quantize(args[2]); }',
            "workload --reads 3000 --read-sizes 16,512,4096 --threads 2")

        self.assertEqual(outcome.buckets(), {16: 2000, 512: 2000, 4096: 2000}, outcome)

    def test_every_entry_has_its_return(self):
        outcome = self.trace(
            "fbt::vfs_read:entry { self->t = timestamp; } fbt::vfs_read:return /self->t/"
            ' { @["ns"] = quantize(timestamp - self->t); self->t = 0; }'
            ' fbt::vfs_read:entry /execname == "workload"/ { @in = count(); }'
            ' fbt::vfs_read:return /execname == "workload"/ { @out = count(); @sum = sum(arg1); }'
            ' END { printa("<in> %@d\\n<out> %@d\\n", @in, @out); printa("<sum> %@d\\n", @sum); }',
            "workload --reads 2000 --read-size 100 --processes 2 --threads 2", "-q")

        counts = outcome.counts()
        self.assertEqual((counts["<in>"], counts["<out>"]), (8000, 8000), outcome)
        self.assertEqual(counts["<sum>"], 8000 * 100, outcome)
        timed = outcome.buckets()
        self.assertGreater(min(timed), 0, outcome)
        # Besides the workload only the command port reads, a handful of times.
        self.assertIn(sum(timed.values()) - 8000, range(0, 20), outcome)

    def test_globs_and_modules_fire(self):
        outcome = self.trace(
            "fbt:vmlinux:tcp_*:entry, fbt:loop::entry { @[probemod, probefunc] = count(); }",
            "workload --tcp 10; workload --reads 16 --file /dev/loop0 --direct")

        counts = outcome.counts()
        self.assertEqual(counts.get("vmlinux tcp_v4_connect"), 10, outcome)
        self.assertEqual(counts.get("loop loop_queue_rq"), 16, outcome)
        self.assertFalse([name for name in counts
                          if name.startswith("vmlinux ") and "tcp_" not in name], outcome)

    def test_globs_and_modules_are_listed(self):
        outcome = ringside.run("fbt:vmlinux:tcp_*:entry, fbt:loop::entry", image=self.image,
                               cpus=self.cpus, options=["-l"])

        self.assertEqual(outcome.status, 0, outcome)
        rows = [line.split() for line in outcome.stdout.splitlines()]
        self.assertEqual(rows[0], ["ID", "PROVIDER", "MODULE", "FUNCTION", "NAME"], outcome)
        names = [tuple(row[1:]) for row in rows[1:]]
        self.assertIn(("fbt", "vmlinux", "tcp_v4_connect", "entry"), names)
        self.assertIn(("fbt", "loop", "loop_queue_rq", "entry"), names)
        self.assertGreater(len(names), 100)
        for name in names:
            self.assertTrue(name[1] == "loop" or name[2].startswith("tcp_"), name)
            self.assertEqual((name[0], name[3]), ("fbt", "entry"))

    def test_strings_of_user_memory(self):
        # The path is one of the command's words: on the stack, so its page is there.
        outcome = self.trace(
            'syscall::openat:entry { printf("%d %s %s", pid, execname, copyinstr(arg1)); }',
            "workload --opens 25 --open-path /data/disk")

        pids = re.findall(r"(\d+) workload /data/disk$", outcome.stdout, re.MULTILINE)
        self.assertEqual(len(pids), 25, outcome)
        self.assertEqual(len(set(pids)), 1, outcome)

    def test_strings_of_kernel_structures(self):
        outcome = self.trace(
            "fbt::do_filp_open:entry { trace(stringof(args[1]->name)); }"
            " fbt::vfs_read:entry { trace(stringof(args[0]->f_path.dentry->d_name.name)); }",
            "workload --reads 40 --file /data/input --opens 25 --open-path /data/disk")

        words = last_words(outcome)
        self.assertEqual(words.count("/data/disk"), 25, outcome)
        self.assertEqual(words.count("/data/input"), 1, outcome)
        self.assertEqual(words.count("input"), 40, outcome)

    def test_profile_samples_and_ticks(self):
        outcome = self.trace(
            "profile-97 { @[arg0] = count(); } tick-1s { printa(@); } tick-5s { exit(0); }",
            "workload --getppid 1000 --seconds 600")

        blocks = outcome.stdout.split(":tick-1s")[1:]
        self.assertIn(len(blocks), (4, 5), outcome)
        totals = [sum(int(count) for _, count in re.findall(r"^ +(-?\d+) +(\d+)$", block, re.M))
                  for block in blocks]
        self.assertEqual(totals, sorted(totals), outcome)
        ideal = 97 * len(blocks) * self.cpus
        self.assertGreater(totals[-1], ideal * 0.5, outcome)
        self.assertLess(totals[-1], ideal * 1.2, outcome)

    def test_all_of_fbt_at_once(self):
        outcome = self.trace(
            "fbt:::entry { @[probefunc] = count(); }",
            "workload --reads 2000 --writes 500 --opens 300 --getppid 3000 --processes 2", "-q")

        counts = outcome.counts()
        told = {"read": 4000, "write": 1001, "openat": 2 * (300 + 2), "getppid": 6000}
        for name, count in told.items():
            self.assertEqual(counts[name], count, (name, outcome.stderr))
        self.assertGreaterEqual(counts.get("vfs_read", 0), 4000, outcome.stderr)
        self.assertGreaterEqual(counts.get("vfs_write", 0), 1001, outcome.stderr)
        self.assertGreater(len(counts), 300, outcome.stderr)
        self.assertNotIn("drop", outcome.stderr)


globals().update(ringside.on_each(Programs, ringside.GUESTS))

if __name__ == "__main__":
    unittest.main()
