"""ustack() through code without frame pointers, against the process's own backtrace()."""

import re
import unittest

import ringside
from made_images import Archive, add_libraries, dynamic_program, image_with

TICKS = 60 if ringside.QUICK else 300
# The calls that unwind.c makes for us to see.
LOOKS = ('syscall::close:entry /execname == "unwind" && (int)arg0 < 0/'
         ' { printf("<%d>\\n", -(int)arg0); ustack(64); printf("</>\\n"); }')
KNOWN = 7  # calls at known places


def archive_with(program, *libraries):
    archive = Archive()
    archive.file("bin/unwind", program, 0o755)
    add_libraries(archive, *libraries)
    return archive


class Unwind:
    """The tests; the classes at the end say on which guest."""

    image = ""
    cpus = 1

    def trace(self, archive):
        environment = self.enterContext(image_with(self.image, archive))
        outcome = ringside.run(LOOKS, image=self.image, cpus=self.cpus, command=f"unwind {TICKS}",
                               options=["-q", "-x", "noresolve"], environment=environment)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertNotIn("error on enabled probe", outcome.stderr, outcome)
        theirs = {int(number): words.split() for number, words in
                  re.findall(r"^look (\d+)((?: [0-9a-f]+)*)$", outcome.stdout, re.MULTILINE)}
        # The first frame is the call itself. The console may speak between two lines of ours.
        ours = {int(number): re.findall(r"^ +0x([0-9a-f]+)$", lines, re.MULTILINE)[1:] for
                number, lines in re.findall(r"^<(\d+)>\n(.*?)^</>$", outcome.stdout,
                                            re.DOTALL | re.MULTILINE)}
        self.assertGreaterEqual(len(theirs), TICKS + KNOWN, outcome)
        del ours[1], theirs[1]
        return ours, theirs

    def check(self, archive):
        ours, theirs = self.trace(archive)
        self.assertEqual(ours.keys(), theirs.keys())
        differ = {number: (ours[number], theirs[number]) for number in theirs
                  if ours[number] != theirs[number]}
        self.assertEqual(differ, {}, f"{len(differ)} of {len(theirs)}")
        # Short ones prove little.
        self.assertGreater(max(map(len, theirs.values())), 10)
        self.assertGreater(min(map(len, theirs.values())), 2)

    def test_a_program_with_a_shared_c_library(self):
        self.check(archive_with(dynamic_program("unwind.c", "-fomit-frame-pointer", "-Wl,-z,lazy"),
                                "libgcc_s.so.1"))

    def test_a_program_in_cxx(self):
        self.check(archive_with(dynamic_program("unwind_cxx.cc", "-fomit-frame-pointer",
                                                "-static-libstdc++"), "libgcc_s.so.1"))

    def test_a_static_program(self):
        self.check(archive_with(dynamic_program("unwind.c", "-fomit-frame-pointer", "-static-pie")))


globals().update(ringside.on_each(Unwind, ringside.GUESTS, "UnwindOn"))

if __name__ == "__main__":
    unittest.main()
