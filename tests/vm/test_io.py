"""The provider io: what it says of requests, against known ones and the guest's own counts.

Disks are virtio's, with ext4, XFS and a partition on them. Truth is what dd was asked for,
/proc/diskstats and the events of tracefs.
"""

import re
import unittest

import disks
import ringside
from guest import NO_NAMES
from test_attach_qmp import Machine, end

KIB = 1024
# Between two of these the program below counts: a call that nobody else makes.
WATCH = "hostname watched; "
WATCHED = "int watching; syscall::sethostname:entry { watching = !watching; } "
TRACEFS = "/sys/kernel/tracing"
BIO_EVENT = f"{TRACEFS}/events/block/block_bio_queue/enable"


def diskstats(text):
    """Of each disk in the texts of /proc/diskstats: the last one's numbers less the first one's."""
    found = {}
    for line in re.findall(r"^ *\d+ +\d+ (\w+ \d+ .*)$", text, re.MULTILINE):
        name, *numbers = line.split()
        found.setdefault(name, []).append([int(number) for number in numbers])
    return {name: [b - a for a, b in zip(rows[0], rows[-1])] for name, rows in found.items()}


class Io:
    """The tests; the classes at the end say on which guest. One boot for all of them."""

    image = ""

    @classmethod
    def setUpClass(cls):
        options = cls.enterClassContext(disks.disks())
        cls.machine = cls.enterClassContext(Machine(cls.image, cpus=2, options=options))
        status, said = cls.machine.port.run(disks.MOUNT)
        if status != 0:
            raise AssertionError(said)

    def trace(self, program, command):
        """The program's output while the guest runs a command, and what the command has said."""
        program = 'BEGIN { printf("tracing\\n"); } ' + program
        with self.machine.trace(program, ["-q"]) as running:
            running.read_until(lambda text: "tracing\n" in text)
            status, said = self.machine.port.run(command)
            outcome = end(running)
        self.assertEqual((status, outcome.status), (0, 0), (said, outcome))
        self.assertEqual(outcome.stderr, "", outcome)
        return outcome, said.decode()

    def test_direct_reads_and_writes_of_files(self):
        for system, disk in (("ext4", "vda"), ("xfs", "vdb")):
            with self.subTest(system):
                self.check_direct(system, disk)

    def check_direct(self, system, disk):
        """16 writes of 64 KiB and 256 reads of 4 KiB, each of them one request."""
        path = f"/mnt/{system}/direct/file"
        program = (
            f'io:::start, io:::done /args[2]->fi_pathname == "{path}"/ {{'
            ' @[probename, args[0]->b_flags & B_READ ? "R" : "W", args[0]->b_bcount] = count(); }'
            f' io:::start /args[2]->fi_pathname == "{path}"/ {{'
            " @about[execname, args[1]->dev_statname, args[2]->fi_name, args[2]->fi_dirname,"
            " args[2]->fi_fs, args[2]->fi_mount, args[2]->fi_oflags & (O_DIRECT | O_WRONLY),"
            " args[0]->b_flags & (B_PHYS | B_PAGEIO | B_ASYNC | B_ERROR)] = count();"
            ' @offset[args[0]->b_flags & B_READ ? "R" : "W"] = sum(args[2]->fi_offset);'
            " started[args[0]->b_edev, args[0]->b_blkno] = args[0]->b_bcount; }"
            f' io:::done /args[2]->fi_pathname == "{path}" &&'
            " started[args[0]->b_edev, args[0]->b_blkno] == args[0]->b_bcount - args[0]->b_resid &&"
            " args[0]->b_error == 0 && args[0]->b_flags & B_DONE/ { @paired = count(); }"
            ' END { printa("%s %s %d %@d\\n", @); printa("%s %s %s %s %s %s %x %x %@d\\n", @about);'
            ' printa("offset %s %@d\\n", @offset); printa("paired %@d\\n", @paired); }')
        outcome, _ = self.trace(program, (
            f"mkdir /mnt/{system}/direct; dd if=/dev/zero of={path} bs=64k count=16 oflag=direct &&"
            f" dd if={path} of=/dev/null bs=4k count=256 iflag=direct"))

        counts = outcome.counts()
        about = f"dd {disk} file /mnt/{system}/direct {system} /mnt/{system}"
        expected = {f"{name} {how}": number for name in ("start", "done")
                    for how, number in (("W 65536", 16), ("R 4096", 256))}
        expected |= {f"{about} 4001 20": 16, f"{about} 4000 20": 256, "paired": 16 + 256,
                     "offset W": 64 * KIB * sum(range(16)), "offset R": 4 * KIB * sum(range(256))}
        self.assertEqual(counts, expected, outcome)

    def test_the_page_caches_reads_and_writes(self):
        for system in ("ext4", "xfs"):
            with self.subTest(system):
                path = f"/mnt/{system}/cached/file"
                outcome, _ = self.trace(
                    f'io:::start, io:::done /args[2]->fi_pathname == "{path}"/ {{'
                    ' @[probename, args[0]->b_flags & B_READ ? "R" : "W",'
                    " args[0]->b_flags & (B_PHYS | B_PAGEIO)] = sum(args[0]->b_bcount); }"
                    f' io:::start /args[2]->fi_pathname == "{path}" && args[0]->b_flags & B_READ/ {{'
                    " @covered = sum(args[0]->b_bcount *"
                    " (args[2]->fi_offset + args[2]->fi_offset + args[0]->b_bcount)); }"
                    ' END { printa("%s %s %x %@d\\n", @); printa("covered %@d\\n", @covered); }',
                    f"mkdir /mnt/{system}/cached; dd if=/dev/zero of={path} bs=300k count=7 && sync;"
                    f" echo 3 >/proc/sys/vm/drop_caches; cat {path} >/dev/null")

                # Whole blocks; of pieces that do not overlap and leave nothing out the sums of
                # length * (begin + end) are the square of the end.
                size = -(-7 * 300 // 4) * 4 * KIB
                expected = {f"{name} {how} 10": size for name in ("start", "done") for how in "RW"}
                self.assertEqual(outcome.counts(), expected | {"covered": size * size}, outcome)

    def test_all_requests_are_as_many_as_the_kernel_counts(self):
        counted = "/watching && args[0]->b_bcount != 0/"
        # The file systems may write something of their own at the edges of what is watched, which then
        # begins before it, or ends after it.
        for _ in range(3):
            outcome, said = self.trace(
                WATCHED +
                f"io:::start {counted} {{ @begun = count(); @sectors = sum(args[0]->b_bcount / 512); }}"
                f" io:::done {counted} {{ @ended = count();"
                ' @bytes[args[1]->dev_statname, args[0]->b_flags & B_READ ? "R" : "W"] ='
                " sum(args[0]->b_bcount); }"
                ' END { printa("begun %@d\\n", @begun); printa("sectors %@d\\n", @sectors);'
                ' printa("ended %@d\\n", @ended); printa("bytes %s %s %@d\\n", @bytes); }',
                f"sync; {NO_NAMES}; {WATCH} cat /proc/diskstats; echo >{TRACEFS}/trace; echo 1 >{BIO_EVENT};"
                " for system in ext4 xfs; do mkdir -p /mnt/$system/all; for n in 1 2 3 4 5; do"
                " dd if=/dev/zero of=/mnt/$system/all/$n bs=200k count=3 2>/dev/null; done;"
                " dd if=/dev/zero of=/mnt/$system/all/big bs=4M count=1 oflag=direct 2>/dev/null; sync;"
                " echo 3 >/proc/sys/vm/drop_caches; cat /mnt/$system/all/[1-5] >/dev/null;"
                " dd if=/mnt/$system/all/big of=/dev/null bs=4M iflag=direct 2>/dev/null; done; sync;"
                f" echo 0 >{BIO_EVENT}; cat /proc/diskstats; {WATCH} cat {TRACEFS}/trace")
            counts = outcome.counts()
            events = [int(sectors) for sectors in
                      re.findall(r"block_bio_queue: \d+,\d+ \S+ \d+ \+ (\d+) ", said)]
            events = [sectors for sectors in events if sectors]
            found = (counts["begun"], counts["ended"], counts["sectors"])
            expected = (len(events), len(events), sum(events))
            if found == expected:
                break
        self.assertGreater(len(events), 20, said)
        self.assertEqual(found, expected, outcome)
        kernels = diskstats(said)
        for disk in ("vda", "vdb"):
            ours = [counts[f"bytes {disk} {how}"] // disks.SECTOR for how in "RW"]
            self.assertEqual(ours, [kernels[disk][2], kernels[disk][6]], (disk, outcome))
            self.assertGreater(ours[0], 8192 + 3000, outcome)

    def test_a_partition_has_its_own_name_and_blocks(self):
        outcome, _ = self.trace(
            "io:::start, io:::done {"
            ' @[probename, args[1]->dev_statname, args[1]->dev_pathname, args[1]->dev_name,'
            " args[1]->dev_instance, getmajor(args[0]->b_edev) == args[1]->dev_major &&"
            " getminor(args[0]->b_edev) == args[1]->dev_minor, args[1]->dev_minor & 0xf,"
            " args[0]->b_blkno, args[0]->b_lblkno, args[2]->fi_pathname] = count(); }"
            ' END { printa("%s %s %s %s %d %d %d %d %d %s %@d\\n", @); }',
            "for block in 5 9 9; do dd if=/dev/vdc1 of=/dev/null bs=4k skip=$block count=1"
            " iflag=direct; dd if=/dev/vdc of=/dev/null bs=4k skip=$block count=1 iflag=direct; done")

        expected = {f"{name} {disk} /dev/{disk} virtio_blk 2 1 {minor} {8 * block} {8 * block} <none>": number
                    for name in ("start", "done") for disk, minor in (("vdc", 0), ("vdc1", 1))
                    for block, number in ((5, 1), (9, 2))}
        self.assertEqual(outcome.counts(), expected, outcome)

    def test_a_request_that_fails_says_how(self):
        outcome, said = self.trace(
            'io:::start, io:::done /args[1]->dev_statname == "vdd"/ {'
            " @[probename, args[0]->b_blkno, args[0]->b_bcount, args[0]->b_resid, args[0]->b_error,"
            " args[0]->b_flags & (B_READ | B_ERROR | B_DONE | B_BUSY)] = count(); }"
            ' END { printa("%s %d %d %d %d %x %@d\\n", @); }',
            "for block in 98 100; do dd if=/dev/vdd of=/dev/null bs=4k skip=$block count=1"
            " iflag=direct; done; true")

        self.assertIn("dd: /dev/vdd: Input/output error", said)
        block = disks.BAD
        expected = {f"start {block - 16} 4096 0 0 41": 1, f"done {block - 16} 4096 0 0 42": 1,
                    f"start {block} 4096 0 0 41": 1, f"done {block} 4096 4096 5 46": 1}
        self.assertEqual(outcome.counts(), expected, outcome)

    def test_who_waits_for_a_request_is_told_from_its_beginning_to_its_end(self):
        about = '/execname == "dd" && args[1]->dev_statname == "vdc"/'
        outcome, _ = self.trace(
            f"io:::wait-start {about} {{ self->bio = arg0; @[probename, args[0]->b_bcount] = count(); }}"
            f" io:::start {about} {{ @[probename, self->bio == arg0] = count(); }}"
            " io:::done /args[1]->dev_statname == \"vdc\"/ { ended[arg0] = args[0]->b_bcount; }"
            f" io:::wait-done {about} {{ @[probename, ended[arg0]] = count();"
            ' @flags[args[0]->b_flags & (B_DONE | B_BUSY), self->bio == arg0] = count(); }'
            ' END { printa("%s %d %@d\\n", @); printa("flags %x %d %@d\\n", @flags); }',
            "for n in 1 2 3; do dd if=/dev/vdc of=/dev/null bs=4k skip=$n count=2 iflag=direct; done")

        self.assertEqual(outcome.counts(), {"wait-start 4096": 6, "start 1": 6, "wait-done 4096": 6,
                                            "flags 2 1": 6}, outcome)

    def test_data_lies_where_b_addr_says(self):
        outcome, _ = self.trace(
            'io:::start /args[1]->dev_statname == "vdc" && args[0]->b_flags & B_WRITE &&'
            " args[0]->b_addr != 0/ {"
            ' printf("%s\\n", stringof((char *)args[0]->b_addr)); }',
            "echo 'words on their way' | dd of=/dev/vdc bs=4k seek=3000 conv=sync,fsync")

        self.assertIn("words on their way\n", outcome.stdout, outcome)

    def test_they_are_listed_with_their_arguments(self):
        outcome = ringside.run("io:::", image=self.image, options=["-l", "-v"])

        self.assertEqual(outcome.status, 0, outcome)
        for name, number in (("start", 1), ("done", 3), ("wait-start", 1), ("wait-done", 1)):
            self.assertEqual(len(re.findall(rf" {name}\n", outcome.stdout)), number, outcome)
        self.assertRegex(outcome.stdout, r"args\[0\]: bufinfo_t \*\w*\n\t\targs\[1\]: devinfo_t \*\w*\n"
                                         r"\t\targs\[2\]: fileinfo_t \*", outcome)


globals().update(ringside.on_each(Io))

if __name__ == "__main__":
    unittest.main()
