"""Modules that come and go while probes stand in them."""

import unittest

import ringside

READS = "workload --file /dev/loop0 --direct --reads"
# The loop device needs a moment to let go of its module.
UNLOAD = ("losetup -d /dev/loop0; n=0; until rmmod loop 2>/dev/null; do n=$((n + 1));"
          " [ $n -lt 500 ] || exit 9; usleep 10000; done")
LOAD = "insmod /modules/loop.ko && losetup /dev/loop0 /data/disk || exit 8"


class Modules(unittest.TestCase):
    def test_unloading_a_probed_module_drops_its_probes_alone(self):
        for image in ringside.IMAGES:
            with self.subTest(image):
                outcome = ringside.run(
                    "fbt:loop::entry { @[probefunc] = count(); }"
                    ' fbt::vfs_read:entry /execname == "workload"/ { @all = count(); }'
                    ' END { printa("<reads> %@d\\n", @all); }', image=image, cpus=2,
                    options=["-q"],
                    command=f"dmesg -c >/dev/null; {READS} 16; {UNLOAD}; echo unloaded; {LOAD};"
                            f" for n in 1 2 3; do {UNLOAD}; {LOAD}; done; {READS} 32; dmesg")

                counts = outcome.counts()
                self.assertEqual(outcome.status, 0, outcome)
                self.assertIn("unloaded\n", outcome.stdout)
                self.assertIn("\nread 32\n", outcome.stdout)
                self.assertEqual(counts["<reads>"], 16 + 32, "what is not of the module stays")
                self.assertEqual(counts["loop_queue_rq"], 16, outcome)
                self.assertRegex(outcome.stderr, r"the guest changed its code at .*gone")
                self.assertNotRegex(outcome.stdout, r"BUG|Oops|WARNING|Call Trace|int3")


if __name__ == "__main__":
    unittest.main()
