"""Writes initramfs archives (cpio, format "newc") without root and without temporary trees.

Used by images/build. Every entry belongs to root, has time 0 and is written in the given order, so
that equal input gives equal bytes. Source of the layout: the kernel's
Documentation/driver-api/early-userspace/buffer-format.rst.
"""

import stat


class Archive:
    """Collects entries; `bytes()` is the archive."""

    def __init__(self):
        self._parts = []
        self._known = set()
        self._inode = 0

    def _entry(self, name, mode, data=b""):
        self._inode += 1
        raw = name.encode() + b"\0"
        # magic, then: inode mode uid gid links mtime size dev(2) rdev(2) namesize check
        fields = [self._inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0]
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + raw
        self._parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def directory(self, name):
        """Adds a directory with its parents; adding it again does nothing."""
        name = name.strip("/")
        if name and name not in self._known:
            self.directory(name.rpartition("/")[0])
            self._known.add(name)
            self._entry(name, stat.S_IFDIR | 0o755)

    def file(self, name, data, mode=0o644):
        """Adds a regular file; its directory is added where it is missing."""
        self.directory(name.rpartition("/")[0])
        self._entry(name.strip("/"), stat.S_IFREG | mode, data)

    def symlink(self, name, target):
        """Adds a symbolic link."""
        self.directory(name.rpartition("/")[0])
        self._entry(name.strip("/"), stat.S_IFLNK | 0o777, target.encode())

    def bytes(self):
        """The whole archive with its trailer."""
        self._entry("TRAILER!!!", 0)
        return b"".join(self._parts)
