"""Guests that libvirt or QEMU saved, and files that are none: what --core makes of them.

The truth is what the guest said just before it was saved.
"""

import os
import pathlib
import struct
import subprocess
import tempfile
import time
import unittest

import guest
import libvirt
import ringside
import test_attach_qmp
from patient import why

KERNEL = ('BEGIN { printf("%s %s", `init_uts_ns.name.release, stringof(`init_task.comm)); exit(0); }')


def core(path, program=KERNEL):
    """Runs a program over a file."""
    return subprocess.run([ringside.binary(), "--core", path, "-qn", program], text=True,
                          capture_output=True, timeout=ringside.TIMEOUT, check=False)


class Images(unittest.TestCase):
    """Streams of guests."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringside-saved-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, path, image, cpus, tasks):
        """D reads the kernel; `why` finds all CPUs and tasks."""
        release = (guest.images_folder() / image / "release").read_text().strip()
        said = core(path)
        self.assertEqual((said.returncode, said.stderr, said.stdout.strip()),
                         (0, "", f"{release} swapper/0"))
        text, tree = why("--core", path)
        self.assertEqual(tree["release"], release, text)
        self.assertEqual([cpu["cpu"] for cpu in tree["cpus"]], [*range(cpus)], text)
        self.assertEqual(tree["vcpus"], [], text)
        self.assertAlmostEqual(tree["tasks"], tasks, delta=8, msg=text)

    def test_libvirts_save_image(self):
        if missing := libvirt.missing():
            self.skipTest(missing)
        with libvirt.Libvirt() as daemon:
            domain = libvirt.Domain(daemon, "saved", "debian-6.1", 2).start()
            self.addCleanup(domain.close)
            tasks = int(domain.port.run("ls -d /proc/[0-9]*/task/* | wc -l")[1])
            image = domain.folder / "image"
            daemon.virsh("save", "saved", image)
            self.check(image, "debian-6.1", 2, tasks)
            # Compressed in name: it is refused before it is unpacked.
            data = bytearray(image.read_bytes())
            data[28:32] = struct.pack("<I", 1)
            (self.folder / "gzip").write_bytes(data)
        said = core(self.folder / "gzip")
        self.assertEqual(said.returncode, 1)
        self.assertIn("is a compressed libvirt save image (gzip); restore it, and write an ELF core",
                      said.stderr)

    def test_libvirts_dumps_of_memory(self):
        if missing := libvirt.missing():
            self.skipTest(missing)
        release = (guest.images_folder() / "debian-6.12/release").read_text().strip()
        with libvirt.Libvirt() as daemon:
            domain = libvirt.Domain(daemon, "dumped", "debian-6.12", 2).start()
            self.addCleanup(domain.close)
            elf, zlib = domain.folder / "elf", domain.folder / "zlib"
            daemon.virsh("dump", "--memory-only", "dumped", elf)
            daemon.virsh("dump", "--memory-only", "--format", "kdump-zlib", "dumped", zlib)
            said = core(elf)
            self.assertEqual((said.returncode, said.stderr, said.stdout.strip()),
                             (0, "", f"{release} swapper/0"))
            text, tree = why("--core", elf)
            self.assertEqual(sorted(vcpu["cpu"] for vcpu in tree["vcpus"]), [0, 1], text)
            said = core(zlib)
            self.assertEqual((said.returncode, said.stderr, said.stdout.strip()),
                             (0, "", f"{release} swapper/0"))
            text, packed = why("--core", zlib)
            self.assertEqual(sorted(vcpu["cpu"] for vcpu in packed["vcpus"]), [0, 1], text)
            self.assertEqual(packed["tasks"], tree["tasks"], text)

    def test_qemus_migration_stream(self):
        for image, cpus, memory in (("debian-6.12", 1, 512), ("debian-6.1", 2, 6144)):
            with self.subTest(image), test_attach_qmp.Machine(image, cpus, memory) as machine:
                tasks = int(machine.port.run("ls -d /proc/[0-9]*/task/* | wc -l")[1])
                path = self.folder / image
                machine.owner.ask("migrate", uri=f"exec:cat>{path}")
                deadline = time.monotonic() + guest.TIMEOUT
                while (status := machine.owner.ask("query-migrate")["status"]) != "completed":
                    self.assertNotEqual(status, "failed")
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.2)
                self.check(path, image, cpus, tasks)
                whole = path.read_bytes()
                path.write_bytes(whole[:len(whole) // 2])
                said = core(path)
                self.assertEqual((said.returncode, said.stderr), (
                    1, f"ringside: {path}: its migration stream is damaged: it ends too early\n"))

    def test_files_that_are_no_saved_guest(self):
        (self.folder / "empty").touch()
        (self.folder / "small").write_bytes(b"x" * 1000)
        (self.folder / "kdump").write_bytes(b"KDUMP   " + bytes(4096))
        (self.folder / "flat").write_bytes(b"makedumpfile" + bytes(4096))
        (self.folder / "partial").write_bytes(b"LibvirtQemudPart" + bytes(4096))
        with open(self.folder / "zeros", "wb") as zeros:
            zeros.truncate(32 << 20)
        arm = bytearray(pathlib.Path("/bin/true").read_bytes()[:4096])
        arm[18:20] = struct.pack("<H", 183)
        (self.folder / "arm").write_bytes(arm)
        os.mkfifo(self.folder / "fifo")
        refused = {
            "absent": "cannot open {}: No such file or directory",
            "empty": "{}: it is neither a core nor as large as a guest's RAM",
            "small": "{}: it is neither a core nor as large as a guest's RAM",
            "kdump": "{}: its compressed dump is damaged: it ends within its headers",
            "flat": "{}: its flattened dump is damaged: it ends too early",
            "partial": "{}: it is a libvirt save image that was never completed",
            "zeros": "{}: no running Linux kernel in the guest's memory yet",
            "arm": "{}: it is an ELF file, but not of an x86-64 machine",
            "fifo": "{} is not a file",
            ".": "{} is not a file",
        }
        for name, words in refused.items():
            with self.subTest(name):
                path = self.folder / name if name != "." else self.folder
                said = core(path)
                self.assertEqual((said.returncode, said.stdout, said.stderr),
                                 (1, "", f"ringside: {words.format(path)}\n"))


if __name__ == "__main__":
    unittest.main()
