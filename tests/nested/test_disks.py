"""Our own VMM's disks with Debian's virtio driver: nothing stalls, every byte arrives.

The guest goes past its page cache (direct) where requests are to be as small or as large as said,
and through it where they are to be of many scattered pages.
"""

import unittest

import nested

MIB = 32  # of each disk
SMALL = 2000  # requests of 4 KiB


class Disks(nested.TestCase):
    """Two disks: /tmp/one with random bytes, /tmp/two with zeroes."""

    def setUp(self):
        self.run_in_level1(f"dd if=/dev/urandom of=/tmp/one bs=1M count={MIB} &&"
                           f" dd if=/dev/zero of=/tmp/two bs=1M count={MIB}")

    def tearDown(self):
        self.run_in_level1("rm -f /tmp/one /tmp/two")

    def in_guest(self, options, command):
        """Runs a shell command in a guest, which has to succeed; returns what it printed."""
        steps = " && ".join(line.strip() for line in command.strip().splitlines())
        outcome = self.run_in_level1("/ringside/ringside --machine kvm --image debian-6.1"
                                     f" {options} -qn 'BEGIN {{}}' -c '{steps} && echo all done'")
        self.assertIn("all done", outcome.stdout, outcome)
        return outcome.stdout

    def sums(self):
        """MD5 of both files."""
        lines = self.run_in_level1("md5sum /tmp/one /tmp/two").stdout.splitlines()
        return [line.split()[0] for line in lines]

    def check_transfers(self, cpus):
        """Large and small requests, both ways, then a copy and its sum as the host sees it."""
        before = self.sums()[0]
        printed = self.in_guest(
            f"--cpus {cpus} --disk /tmp/one --disk /tmp/two", f"""
            dd if=/dev/vda of=/dev/null bs=1M iflag=direct
            dd if=/dev/vda of=/dev/null bs=4k count={SMALL} iflag=direct
            dd if=/dev/zero of=/dev/vdb bs=1M count={MIB} oflag=direct
            dd if=/dev/zero of=/dev/vdb bs=4k count={SMALL} oflag=direct conv=fsync
            dd if=/dev/vda of=/dev/vdb bs=1M conv=fsync
            sync
            md5sum /dev/vda /dev/vdb""")

        self.assertEqual(self.sums(), [before, before])
        self.assertEqual(printed.count(before), 2, printed)

    def test_one_cpu_reads_writes_and_copies(self):
        self.check_transfers(1)

    def test_two_cpus_read_write_and_copy(self):
        self.check_transfers(2)

    def test_both_disks_at_once(self):
        before = self.sums()[0]
        self.in_guest("--cpus 2 --disk /tmp/one --disk /tmp/two", f"""
            (dd if=/dev/vda bs=4k count={SMALL} iflag=direct | md5sum >/tmp/sum) & reader=$!
            dd if=/dev/zero of=/dev/vdb bs=4k count={SMALL} oflag=direct conv=fsync
            wait $reader""")

        self.assertEqual(self.sums()[0], before)

    def test_a_read_only_disk_refuses_writes(self):
        before = self.sums()
        self.in_guest("--disk /tmp/one,ro --disk /tmp/two,ro", """
            [ $(cat /sys/block/vda/ro) = 1 ]
            ! dd if=/dev/zero of=/dev/vda bs=4k count=1 oflag=direct
            ! dd if=/dev/zero of=/dev/vdb bs=1M count=1 conv=fsync""")

        self.assertEqual(self.sums(), before)


if __name__ == "__main__":
    unittest.main()
