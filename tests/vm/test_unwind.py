"""ustack() through code without frame pointers, against the process's own backtrace()."""

import pathlib
import re
import tempfile
import unittest

import ringside
from disks import MOUNT, disks
from made_images import Archive, add_libraries, dynamic_program, image_with, initrd_with
from test_attach_qmp import Machine, begin, end, started

TICKS = 60 if ringside.QUICK else 300
# The calls that unwind.c makes for us to see.
LOOKS = ('syscall::close:entry /execname == "unwind" && (int)arg0 < 0/'
         ' { printf("<%d>\\n", -(int)arg0); ustack(64); printf("</>\\n"); }')
KNOWN = 7  # calls at known places
OPTIONS = ["-x", "noresolve"]
LAZY = ("-fomit-frame-pointer", "-Wl,-z,lazy")  # calls go through stubs that find their function


def archive_with(program, *libraries):
    archive = Archive()
    archive.file("bin/unwind", program, 0o755)
    add_libraries(archive, *libraries)
    return archive


class Unwind:
    """The tests; the classes at the end say on which guest."""

    image = ""
    cpus = 1

    def check(self, outcome, said):
        """The stacks in a trace's outcome are those that the program said."""
        self.assertEqual(outcome.status, 0, outcome)
        self.assertNotIn("error on enabled probe", outcome.stderr, outcome)
        theirs = {int(number): words.split() for number, words in
                  re.findall(r"^look (\d+)((?: [0-9a-f]+)*)$", said, re.MULTILINE)}
        # The first frame is the call itself. The console may speak between two lines of ours.
        ours = {int(number): re.findall(r"^ +0x([0-9a-f]+)$", lines, re.MULTILINE)[1:] for
                number, lines in re.findall(r"^<(\d+)>\n(.*?)^</>$", outcome.stdout,
                                            re.DOTALL | re.MULTILINE)}
        self.assertGreaterEqual(len(theirs), TICKS + KNOWN, said)
        self.assertEqual(ours.keys(), theirs.keys())
        del ours[1], theirs[1]
        differ = {number: (ours[number], theirs[number]) for number in theirs
                  if ours[number] != theirs[number]}
        self.assertEqual(differ, {}, f"{len(differ)} of {len(theirs)}")
        # Short ones prove little.
        self.assertGreater(max(map(len, theirs.values())), 10)
        self.assertGreater(min(map(len, theirs.values())), 2)

    def trace(self, archive):
        environment = self.enterContext(image_with(self.image, archive))
        outcome = ringside.run(LOOKS, image=self.image, cpus=self.cpus, command=f"unwind {TICKS}",
                               options=["-q", *OPTIONS], environment=environment)
        self.check(outcome, outcome.stdout)

    def test_a_program_with_a_shared_c_library(self):
        self.trace(archive_with(dynamic_program("unwind.c", *LAZY), "libgcc_s.so.1"))

    def test_a_program_in_cxx(self):
        self.trace(archive_with(dynamic_program("unwind_cxx.cc", "-fomit-frame-pointer",
                                                "-static-libstdc++"), "libgcc_s.so.1"))

    def test_a_static_program(self):
        self.trace(archive_with(dynamic_program("unwind.c", "-fomit-frame-pointer", "-static-pie")))

    def test_files_on_disks_of_a_guest_that_somebody_else_started(self):
        """Its RAM is only copied; XFS reads files by several pages at once."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="ringside-image-")))
        initrd = folder / "initrd"
        archive = archive_with(dynamic_program("unwind.c", *LAZY), "libgcc_s.so.1")
        initrd.write_bytes(initrd_with(self.image, archive))
        options = self.enterContext(disks())
        with Machine(self.image, self.cpus, options=options, initrd=initrd) as machine:
            for place in ("/mnt/xfs", "/mnt/ext4"):
                prepare = (f"{{ test -d {place} || {{ {MOUNT}; }}; }} && cp /bin/unwind /lib/libc.so.6"
                           f" /lib/libgcc_s.so.1 {place} && sync && echo 3 >/proc/sys/vm/drop_caches")
                self.assertEqual(machine.port.run(prepare)[0], 0)
                with self.subTest(place), machine.trace(begin(LOOKS), ["-q", *OPTIONS]) as running:
                    started(running)
                    status, said = machine.port.run(
                        f"LD_LIBRARY_PATH={place} {place}/unwind {TICKS}")
                    outcome = end(running)
                    self.assertEqual(status, 0, said)
                    self.check(outcome, said.decode())


globals().update(ringside.on_each(Unwind, ringside.GUESTS))

if __name__ == "__main__":
    unittest.main()
