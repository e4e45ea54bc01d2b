"""Probes of processes that live in sandboxes, under debuggers and in other kinds of files: the counts are those of
the program, and it goes on as it would."""

import pathlib
import re
import subprocess
import tempfile
import unittest

from made_images import add_libraries, dynamic_program
from test_attach_qmp import begin, end, started
from test_pid import Case, counts

CALLS = 500
PROGRAM = ('{0}:work:entry {{ @["entries"] = count(); }}'
           ' {0}:work:return {{ @["returns"] = count(); @total = sum(arg1); }}'
           ' END {{ printa("%s %@d\\n", @); printa("total %@d\\n", @total); }}')
COUNTED = {"entries": CALLS, "returns": CALLS, "total": sum(range(3, CALLS + 3))}


class Surroundings(Case):
    IMAGE, CPUS = "debian-6.12", 2
    OPTIONS = ("-fno-toplevel-reorder", "-no-pie")

    def add_to(self, archive):
        library = dynamic_program("library.c", "-shared", "-fPIC", "-DLIBRARY")
        archive.file("lib/libadds.so", library, 0o755)
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "libadds.so").write_bytes(library)
            archive.file("bin/library", dynamic_program("library.c", f"-L{folder}", "-Wl,--no-as-needed", "-ladds"),
                         0o755)
        archive.file("bin/surroundings", dynamic_program("surroundings.c", *self.OPTIONS), 0o755)

    def begin_program(self, way, path="surroundings"):
        said = self.guest(f"rm -f /tmp/go /tmp/said; {path} {way} {CALLS}")
        return re.search(r"process (\d+)", said)[1]

    def go(self):
        return counts(self.guest("touch /tmp/go; while [ ! -e /tmp/said ]; do sleep 0.1; done; cat /tmp/said"))

    def traced(self, program, meanwhile=None):
        with self.machine.trace(begin(program), ["-q"]) as running:
            started(running)
            if meanwhile:
                meanwhile()
            self.assertEqual(self.go(), {"work": CALLS})
            return end(running)

    def check(self, program, **settings):
        outcome = self.traced(program, **settings)
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(counts(outcome.stdout), COUNTED, outcome)

    def test_of_each_way(self):
        before = self.guest("md5sum < /bin/surroundings")
        for way in ("plain", "thread", "strict", "namespaces", "memory", "stepped", "broken"):
            with self.subTest(way):
                pid = self.begin_program(way)
                self.check(PROGRAM.format(f"pid{pid}:a.out"))
        self.assertEqual(self.guest("md5sum < /bin/surroundings"), before)

    def test_of_a_library_that_comes_and_goes(self):
        self.begin_program("library")
        self.guest("library 1 > /dev/null 2>&1 & sleep 0.1")  # has it mapped when tracing begins
        outcome = self.traced('pid*:libadds.so:library_adds:entry { @["entries"] = count(); }')
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(counts(outcome.stdout), {"entries": CALLS + 1})

    def test_beside_uprobes_of_the_guests_own(self):
        """At the same function, and elsewhere in its page."""
        address = {name: int(at, 16) for at, name in re.findall(
            r"^([0-9a-f]+) T (work|more_work|work_middle)$", self.symbols(), re.MULTILINE)}
        base = 0x400000
        for place in ("work_middle", "more_work"):
            with self.subTest(place):
                pid = self.begin_program("plain")
                self.set_uprobe(f"/bin/surroundings:{address[place] - base:#x}")
                self.check(PROGRAM.format(f"pid{pid}:a.out"))
                self.assertEqual(self.uprobes_hits(), CALLS if place == "work_middle" else 1)
        with self.subTest("the same byte"):
            pid = self.begin_program("plain")
            self.set_uprobe(f"/bin/surroundings:{address['work'] - base:#x}")
            outcome = self.traced(f"pid{pid}:a.out:work:entry {{ @ = count(); }}")
            self.assertEqual((outcome.status, outcome.stdout.split()), (0, []), outcome)
            self.assertIn("what runs there is not seen", outcome.stderr)
            self.assertEqual(self.uprobes_hits(), CALLS)

    def set_uprobe(self, where):
        self.guest("mount -t tracefs none /sys/kernel/tracing 2> /dev/null;"
                   f" cd /sys/kernel/tracing; echo 'p:here {where}' > uprobe_events;"
                   " echo 0 > options/record-cmd; echo 1 > events/uprobes/here/enable")

    def uprobes_hits(self):
        """Takes it away, too."""
        return int(self.guest("cd /sys/kernel/tracing; awk '$2 == \"here\" { print $3 }' uprobe_profile;"
                              " echo 0 > events/uprobes/here/enable; echo > uprobe_events"))

    def symbols(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "surroundings"
            path.write_bytes(dynamic_program("surroundings.c", *self.OPTIONS))
            return subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout

    def test_of_a_file_in_an_overlay(self):
        """As in a container: the file itself is in the lower folder."""
        self.guest("for module in $(cat /modules/overlay); do insmod /modules/$module; done;"
                   " mkdir /layers && mount -t tmpfs none /layers && cd /layers && mkdir lower upper work merged &&"
                   " cp /bin/surroundings lower && mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work"
                   " none merged")
        for description in ("pidPID:a.out", "pid*:surroundings"):
            with self.subTest(description):
                pid = self.begin_program("plain", "/layers/merged/surroundings")
                self.check(PROGRAM.format(description.replace("PID", pid)))
        self.guest("cmp /layers/lower/surroundings /bin/surroundings")

    def test_of_text_in_huge_pages(self):
        self.guest("mkdir -p /huge && mount -t tmpfs -o huge=always none /huge &&"
                   " { cat /bin/surroundings; dd if=/dev/zero bs=1M count=4; } > /huge/surroundings 2>/dev/null;"
                   " chmod 755 /huge/surroundings")
        pid = self.begin_program("plain", "/huge/surroundings")
        self.check(PROGRAM.format(f"pid{pid}:a.out"))


class SurroundingsOfOld(Surroundings):
    IMAGE, CPUS = "debian-6.1", 1


class Sanitized(Surroundings):
    """A program that checks its own memory (AddressSanitizer)."""

    OPTIONS = ("-fsanitize=address", *Surroundings.OPTIONS)

    def add_to(self, archive):
        super().add_to(archive)
        add_libraries(archive, "libasan.so.8", "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6")


if __name__ == "__main__":
    unittest.main()
