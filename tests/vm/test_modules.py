"""Modules that come and go while they are traced: their probes appear before their init runs, and go.

The module loop adds as many devices from its init as its parameter says, so that its init's calls
are known; the workload's reads are known, too.
"""

import unittest

import ringside
from test_record import recorded

READS = "workload --file /dev/loop0 --direct --reads"
# The loop device needs a moment to let go of its module.
UNLOAD = ("losetup -d /dev/loop0 2>/dev/null; n=0;"
          " until rmmod loop 2>/dev/null; do n=$((n + 1));"
          " [ $n -lt 500 ] || exit 9; usleep 10000; done")
DEVICES = 5
LOAD = f"insmod /modules/loop.ko max_loop={DEVICES} || exit 8"
ATTACH = "losetup /dev/loop0 /data/disk || exit 7"
# xfs needs libcrc32c, too, where that is a module.
LOAD_XFS = "insmod /modules/libcrc32c.ko; insmod /modules/xfs.ko || exit 6"
UNLOAD_XFS = "rmmod xfs || exit 5; rmmod libcrc32c || exit 4"
TROUBLE = r"BUG|Oops|WARNING|Call Trace|int3|soft lockup|general protection"
# Every entry has its return, and init's calls are as many as its devices.
LOOP = ("fbt:loop::entry { @[probefunc] = count(); @in = count(); }"
        " fbt:loop:loop_add:return { @added = count(); }"
        ' END { printa("<in> %@d\\n", @in); printa("<added> %@d\\n", @added); }')


class Modules(unittest.TestCase):
    def run_in_guests(self, program, command, check, options=("-q",), guests=ringside.GUESTS):
        for image, cpus in guests:
            with self.subTest(image, cpus=cpus):
                outcome = ringside.run(program, image=image, cpus=cpus, options=list(options),
                                       command=f"dmesg -c >/dev/null; {command}; dmesg")
                self.assertEqual(outcome.status, 0, outcome)
                self.assertNotRegex(outcome.stdout, TROUBLE)
                check(outcome, outcome.counts())

    def test_a_module_that_comes_again_loses_no_call_from_its_init_on(self):
        rounds = 20

        def check(outcome, counts):
            self.assertEqual(counts["loop_add"], rounds * DEVICES, outcome)
            self.assertEqual(counts["<added>"], rounds * DEVICES, outcome)
            self.assertEqual(counts["loop_queue_rq"], 16 + 32, outcome)
            self.assertEqual(counts["<all>"], 16 + 32, "what is not of the module stays")
            self.assertRegex(outcome.stderr, r"the guest changed its code at .*gone")
            self.assertRegex(outcome.stderr, r"the guest has loaded module loop: \d+ more probes\n")
            self.assertNotIn("missed its first moments", outcome.stderr)

        # Something else takes its place now and then, so that it comes somewhere else.
        self.run_in_guests(
            LOOP + ' fbt::vfs_read:entry /execname == "workload"/ { @all = count(); }'
            ' END { printa("<all> %@d\\n", @all); }',
            f"{READS} 16; for n in $(seq {rounds}); do {UNLOAD};"
            f" [ $((n % 2)) = 0 ] || insmod /modules/libcrc32c.ko; {LOAD};"
            f" [ $((n % 2)) = 0 ] || rmmod libcrc32c; done; {ATTACH}; {READS} 32", check)

    def test_a_module_that_was_absent_is_traced_from_its_init_on(self):
        def check(outcome, counts):
            self.assertEqual(counts["xfs_mru_cache_init"], 2, outcome)
            self.assertEqual(counts["xfs_mru_cache_uninit"], 2, outcome)
            self.assertGreater(counts["<in>"], 4)
            self.assertEqual(counts["<out>"], 4, outcome)
            self.assertEqual(counts["<module>"], 4, outcome)

        self.run_in_guests(
            'fbt:xfs::entry { @[probefunc] = count(); @in = count(); }'
            ' fbt:xfs:xfs_mru_cache_*:return { @out = count(); }'
            ' fbt:xfs:xfs_mru_cache_*:entry /probemod == "xfs"/ { @module = count(); }'
            ' END { printa("<in> %@d\\n", @in); printa("<out> %@d\\n", @out);'
            ' printa("<module> %@d\\n", @module); }',
            f"{LOAD_XFS}; {UNLOAD_XFS}; {LOAD_XFS}; {UNLOAD_XFS}", check, options=["-q", "-Z"])

    def test_single_instructions_of_a_module_are_traced_from_its_init_on(self):
        rounds = 4

        def check(outcome, counts):
            self.assertEqual(counts["<entry>"], rounds * DEVICES, outcome)
            self.assertEqual(counts["<rets>"], rounds * DEVICES, outcome)
            self.assertRegex(outcome.stderr, r"the guest has loaded module loop: \d+ more probes\n")

        self.run_in_guests(
            "instr:loop:loop_add:other-0 { @in = count(); } instr:loop:loop_add:ret-* { @out = count(); }"
            ' END { printa("<entry> %@d\\n", @in); printa("<rets> %@d\\n", @out); }',
            f"for n in $(seq {rounds}); do {UNLOAD}; {LOAD}; done", check, options=["-q", "-Z"])

    def test_a_module_that_was_absent_records_what_needs_no_list(self):
        def check(outcome, counts):
            self.assertEqual(counts["xfs_mru_cache_init"], 2, outcome)
            self.assertGreater(counts["<in>"], 4)
            self.assertEqual(recorded(outcome), counts["<in>"], outcome)
            self.assertNotIn("not recorded", outcome.stderr)

        self.run_in_guests(
            'fbt:xfs::entry /pid != 1/ { @[probefunc] = count(); @in = count(); }'
            ' END { printa("<in> %@d\\n", @in); }',
            f"{LOAD_XFS}; {UNLOAD_XFS}; {LOAD_XFS}; {UNLOAD_XFS}", check, options=["-q", "-v", "-Z"])

    def test_a_module_that_comes_again_records_by_the_list_that_it_had(self):
        rounds = 5

        def check(outcome, counts):
            self.assertEqual(counts["insmod"], rounds * DEVICES, outcome)
            self.assertEqual(recorded(outcome), rounds * DEVICES, "the guest judges the predicate, too")
            self.assertNotIn("not recorded", outcome.stderr)

        self.run_in_guests(
            'fbt:loop:loop_add:entry /execname == "insmod"/ { @[curthread->comm] = count(); }',
            f"for n in $(seq {rounds}); do {UNLOAD}; {LOAD}; done", check, options=["-q", "-v"])

    def test_a_module_waits_where_the_guest_has_no_list_for_it(self):
        def check(outcome, counts):
            self.assertEqual(counts["insmod"], 1, outcome)
            self.assertEqual(counts["init"], 1, outcome)
            self.assertEqual(recorded(outcome), 1, outcome)
            why = "the guest was told which memory to copy before this probe was there"
            self.assertIn(f"1 place not recorded: {why}\n", outcome.stderr)
            self.assertEqual(outcome.stderr.count(
                f"ringside: -x record=yes: traps of probes that came later wait: {why}\n"), 1, outcome)

        self.run_in_guests(
            "fbt:xfs:xfs_mru_cache_init:entry { @[curthread->comm] = count(); }"
            ' fbt:xfs:xfs_mru_cache_init:return { @["init"] = count(); }',
            f"{LOAD_XFS}; {UNLOAD_XFS}", check, options=["-q", "-v", "-Z", "-x", "record=yes"])

    def test_two_modules_that_come_at_once_are_both_traced(self):
        rounds = 5

        def check(outcome, counts):
            self.assertEqual(counts["loop_add"], rounds * DEVICES, outcome)
            self.assertEqual(counts["xfs_mru_cache_init"], rounds, outcome)
            self.assertNotIn("missed its first moments", outcome.stderr)

        self.run_in_guests(
            "fbt:loop:loop_add:entry, fbt:xfs:xfs_mru*:entry { @[probefunc] = count(); }",
            f"insmod /modules/libcrc32c.ko; for n in $(seq {rounds}); do {UNLOAD};"
            f" (insmod /modules/xfs.ko || echo no xfs) & {LOAD}; wait; rmmod xfs || exit 3; done",
            check, options=["-q", "-Z"], guests=[(image, 2) for image in ringside.IMAGES])

    def test_a_module_whose_init_fails_leaves_nothing(self):
        def check(outcome, counts):
            self.assertEqual(outcome.stdout.splitlines().count("refused"), 3, outcome)
            self.assertEqual(counts["loop_add"], 2 * DEVICES, outcome)

        refused = "insmod /modules/loop.ko max_part=4096 2>/dev/null && exit 2; echo refused"
        self.run_in_guests(
            LOOP, f"{UNLOAD}; {refused}; {refused}; {LOAD}; {UNLOAD}; {refused}; {LOAD}", check)

    def test_stacks_and_names_lead_through_a_module_that_came_later(self):
        def check(outcome, _):
            self.assertRegex(outcome.stdout, r"(?s)loop`loop_configure\+.*vmlinux`blkdev_ioctl")
            self.assertEqual(outcome.stdout.splitlines().count("name loop`loop_add"), DEVICES)

        self.run_in_guests(
            'fbt::fget:entry /execname == "losetup"/ { @[stack()] = count(); }'
            ' fbt:loop:loop_add:return { printf("name %s`%s\\n", probemod, probefunc); }',
            f"{UNLOAD}; {LOAD}; {ATTACH}", check, guests=[(image, 1) for image in ringside.IMAGES])


if __name__ == "__main__":
    unittest.main()
