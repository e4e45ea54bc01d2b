"""Disks for guests of the tests: files with file systems on them, and how a guest gets at them.

A guest has them as virtio's, and loads the drivers itself (images/README.md). Does not: start one.
"""

import contextlib
import pathlib
import struct
import subprocess
import tempfile

MIB = 1 << 20
SECTOR = 512
# XFS is made no smaller, since its version 6.1 of the tools; nothing of it is written.
SIZES = {"ext4": 64 * MIB, "xfs": 320 * MIB, "parts": 16 * MIB, "bad": 16 * MIB}
MAKE = {"ext4": ["mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
        "xfs": ["mkfs.xfs", "-q"]}
PARTITION = 2048  # the first sector of parts' only one
BAD = 800  # the sector of bad that cannot be read

WHOLE = "format=raw,file={}"
BROKEN = ("driver=raw,file.driver=blkdebug,file.image.driver=file,file.image.filename={},"
          f"file.inject-error.0.event=none,file.inject-error.0.iotype=read,"
          f"file.inject-error.0.errno=5,file.inject-error.0.sector={BAD}")

# A guest's command: the first two are mounted below /mnt.
MOUNT = ("for module in $(cat /modules/disks); do insmod /modules/$module 2>/dev/null; done;"
         " mkdir -p /mnt/ext4 /mnt/xfs && mount -t ext4 /dev/vda /mnt/ext4 &&"
         " mount -t xfs /dev/vdb /mnt/xfs && sync")


def partitioned():
    """A first sector with a table of one partition, up to the disk's end."""
    sectors = SIZES["parts"] // SECTOR - PARTITION
    entry = struct.pack("<B3xB3xII", 0, 0x83, PARTITION, sectors)
    return bytes(446) + entry + bytes(48) + b"\x55\xaa"


@contextlib.contextmanager
def disks():
    """QEMU's options for four: vda with ext4, vdb with XFS, vdc with one partition and no more, and
    vdd, of which a sector cannot be read."""
    with tempfile.TemporaryDirectory(prefix="ringside-disks-") as folder:
        options = []
        for name, size in SIZES.items():
            path = pathlib.Path(folder) / name
            with open(path, "wb") as file:
                file.write(partitioned() if name == "parts" else b"")
                file.truncate(size)
            if name in MAKE:
                subprocess.run([*MAKE[name], path], check=True, capture_output=True)
            options += ["-drive", f"if=virtio,{BROKEN if name == 'bad' else WHOLE}".format(path)]
        yield options
