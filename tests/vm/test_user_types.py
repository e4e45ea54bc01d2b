"""Arguments with types in a guest's processes: by the DWARF of the program, and by D's word userland."""

import pathlib
import re
import subprocess
import tempfile
import unittest

from made_images import dynamic_program
from test_host_files import root_with
from test_usdt import Static

CALLS = 300


class Typed(Static):
    PROGRAM = "typed"

    def compiled(self):
        return dynamic_program("typed.c", "-g", "-static")

    def printed(self, program):
        """Its output while the process makes its calls."""
        pid = self.begin_program(CALLS)
        outcome, said = self.traced(program.replace("PID", pid))
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(said, {"handled": CALLS})
        return outcome.stdout

    def test_members_and_texts_of_each_call(self):
        printed = self.printed(
            'pidPID:a.out:handle:entry { @[args[0]->id, args[0]->next->id, (int)args[1], stringof(args[2]),'
            ' stringof(args[0]->path), stringof(args[0]->from.host), args[0]->from.port, args[0]->tries,'
            ' args[0]->size, args[0]->times[1], args[0]->kind] = count(); }')
        self.assertEqual(printed.split(), ["41", "-2", "-3", "name", "/index.html", "example", "8080", "5",
                                           "4097", "-20", "1", str(CALLS)])

    def test_values_that_are_returned(self):
        printed = self.printed(
            "pidPID:a.out:handle:return { @[args[1]->id, stringof(args[1]->path)] = count(); }")
        self.assertEqual(printed.split(), ["-2", "/last", str(CALLS)])

    def test_a_structure_is_printed_whole(self):
        printed = self.printed("pidPID:a.out:handle:entry /!done/ { done = 1; print(*args[0]); }")
        text = " ".join(printed.split())
        for line in ("struct request {", "int id = 0x29", "enum kind kind = URGENT",
                     "unsigned int tries :3 = 0x5", 'char [12] host = [ "example" ]',
                     "unsigned int port = 0x1f90"):
            self.assertIn(line, text)

    def test_a_copy_and_a_pointer_that_are_kept(self):
        printed = self.printed(
            "pidPID:a.out:handle:entry { self->all = *args[0]; self->next = args[0]->next; }"
            " pidPID:a.out:handle:return"
            " { @[self->all.from.port, self->next->id] = count(); self->next = 0; }")
        self.assertEqual(printed.split(), ["8080", "-2", str(CALLS)])

    def test_a_structure_of_the_scripts_own(self):
        printed = self.printed(
            "struct mine { int id; int kind; }; pidPID:a.out:handle:entry"
            " { this->m = (userland struct mine *)arg0; @[this->m->id, this->m->kind] = count(); }")
        self.assertEqual(printed.split(), ["41", "1", str(CALLS)])

    def test_nothing_waits(self):
        pid = self.begin_program(CALLS)
        outcome, _ = self.traced(
            f"pid{pid}:a.out:handle:entry {{ @[args[0]->id, stringof(args[0]->path)] = count(); }}",
            ["-x", "record=yes"])
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(outcome.stdout.split(), ["41", "/index.html", str(CALLS)])

    def test_are_listed(self):
        pid = self.begin_program(CALLS)
        outcome = self.machine.run(f"pid{pid}:a.out:handle:entry", ["-lv"])
        self.assertIn("args[0]: struct request *", outcome.stdout)

    def test_what_has_no_type_is_refused(self):
        pid = self.begin_program(CALLS)
        for program, why in (("share:entry { trace(args[1]); }", "a double and what comes after it"),
                             ("share:return { trace(args[1]); }", "it returns double"),
                             ("handle:entry { trace(args[3]); }", "index 3 is out of range"),
                             ("abort:entry { trace(args[0]); }", "use arg0 to arg9"),
                             ("handle:entry { args[0]->id = 1; }", "copyout")):
            with self.subTest(program):
                self.assertIn(why, self.refused(f"pid{pid}:a.out:{program}"))


class TypedOfOld(Typed):
    IMAGE, CPUS = "debian-6.1", 1


class SharedTypes(Static):
    """A stripped program whose types are in a file that it shares with another one (dwz -m)."""

    PROGRAM = "typed"
    SHARED = "usr/lib/debug/.dwz/typed.debug"

    def compiled(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="ringside-dwz-")))
        whole, other, shared, made = (folder / name for name in ("typed", "other", "shared", "made"))
        whole.write_bytes(dynamic_program("typed.c", "-g", "-static"))
        other.write_bytes(dynamic_program("typed.c", "-g", "-static", "-O1"))
        subprocess.run(["dwz", "-m", shared, "-M", f"/{self.SHARED}", whole, other], check=True)
        notes = subprocess.run(["readelf", "-n", whole], check=True, capture_output=True, text=True).stdout
        build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
        subprocess.run(["objcopy", "--only-keep-debug", whole, made], check=True)
        own = {f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug": made.read_bytes()}
        self.alone = root_with(folder / "alone", own)
        self.both = root_with(folder / "both", own | {self.SHARED: shared.read_bytes()})
        subprocess.run(["strip", "-o", made, whole], check=True)
        return made.read_bytes()

    def test_members_by_types_of_the_other_file(self):
        pid = self.begin_program(CALLS)
        program = f"pid{pid}:a.out:handle:entry {{ @[args[0]->id, stringof(args[0]->path)] = count(); }}"
        self.assertIn("the type of parameter 0 is not known", self.refused(program, ["--sysroot", self.alone]))
        outcome, said = self.traced(program, ["--sysroot", self.both])
        self.assertEqual((outcome.status, outcome.stderr, said), (0, "", {"handled": CALLS}), outcome)
        self.assertEqual(outcome.stdout.split(), ["41", "/index.html", str(CALLS)])


if __name__ == "__main__":
    unittest.main()
