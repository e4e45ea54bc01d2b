"""Probes of a guest's processes: the counts are those of a program that calls its own functions."""

import pathlib
import re
import subprocess
import tempfile
import time
import unittest

import ringside
from made_images import Archive, dynamic_program, initrd_with, static_program
from test_attach_qmp import Machine, begin, end, started

CALLS = 2000
FUNCTIONS = ("pushes", "adds", "loads", "either", "jumps", "recurses", "takes", "calls", "back")
ENTRIES = " ".join(f"pidPID:a.out:{name}:entry {{ @[probefunc] = count(); }}" for name in FUNCTIONS)


def counts(lines):
    """Of lines "NAME NUMBER"."""
    return {name: int(number) for name, number in re.findall(r"^ *(\w+) +(\d+)\s*$", lines, re.MULTILINE)}


class Calling:
    """The program calls.c in a guest, which waits for its word."""

    def __init__(self, machine, calls=CALLS, threads=1, processes=1, program="calls"):
        self._port = machine.port
        status, said = self._port.run(f"rm -f /tmp/go /tmp/said; {program} {calls} {threads} {processes}")
        assert status == 0, said
        self.pid = int(re.search(rb"process (\d+)", said)[1])

    def go(self):
        """Its word on its calls."""
        status, said = self._port.run("touch /tmp/go; while [ ! -e /tmp/said ]; do sleep 0.1; done; "
                                      "cat /tmp/said")
        assert status == 0, said
        return counts(said.decode())


class Case(unittest.TestCase):
    IMAGE, CPUS, APPEND = "debian-6.12", 2, ""

    def setUp(self):
        archive = Archive()
        archive.file("bin/calls", static_program("calls.c"), 0o755)
        self.add_to(archive)
        initrd = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "initrd"
        initrd.write_bytes(initrd_with(self.IMAGE, archive))
        self.machine = self.enterContext(Machine(self.IMAGE, self.CPUS, initrd=initrd, append=self.APPEND))

    def add_to(self, archive):
        """More files for the guest."""

    def guest(self, command):
        """The output of a command in the guest."""
        status, said = self.machine.port.run(command)
        self.assertEqual(status, 0, said)
        return said.decode()

    def trace(self, calling, program, options=(), meanwhile=None):
        """Its outcome, once the program has called all, and what that one says."""
        with self.machine.trace(begin(program.replace("PID", str(calling.pid))), ["-q", *options]) as running:
            started(running)
            if meanwhile:
                meanwhile()
            said = calling.go()
            return end(running), said

    def check_counts(self, calling, program=ENTRIES, **settings):
        outcome, said = self.trace(calling, program, **settings)
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(counts(outcome.stdout), said)

    def refused(self, program, options=()):
        """The line that says why, before the one that shows where."""
        outcome = self.machine.run(program, ["-q", *options])
        self.assertEqual((outcome.status, outcome.stdout), (1, ""), outcome)
        return outcome.stderr.splitlines()[0]


def position_independent():
    """The bytes of the program calls.c that may be mapped anywhere."""
    return dynamic_program("calls.c", "-static-pie", "-fPIE")


def instructions(program, function):
    """How many instructions it has, by another disassembler; without a landing pad."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(program)
        file.flush()
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", file.name],
                              check=True, capture_output=True, text=True).stdout
    return len(re.findall(r"^ +[0-9a-f]+:\t(?!endbr64)", text, re.MULTILINE))


class Counts(Case):
    def add_to(self, archive):
        archive.file("bin/calls-pie", position_independent(), 0o755)

    def test_of_entries_of_all_threads(self):
        self.check_counts(Calling(self.machine))
        self.check_counts(Calling(self.machine, threads=4))

    def test_of_one_process_among_others_of_the_same_program(self):
        outcome, said = self.trace(Calling(self.machine, processes=3), ENTRIES)
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual({name: 3 * number for name, number in counts(outcome.stdout).items()}, said)

    def test_processes_that_open_other_files_wait_for_nobody(self):
        opened = 2000
        outcome, _ = self.trace(
            Calling(self.machine, 10), ENTRIES, ["-v"],
            lambda: self.guest(f"for n in $(seq {opened}); do : > /tmp/other; done"))
        traps = re.search(r"firings by ([\d,]+) traps, ([\d,]+) recorded, ([\d,]+) left out", outcome.stderr)
        self.assertTrue(traps, outcome)
        every, recorded, left_out = (int(number.replace(",", "")) for number in traps.groups())
        self.assertGreater(left_out, opened)
        self.assertLess(every - recorded - left_out, opened // 2)

    def test_of_returns_with_their_values(self):
        outcome, said = self.trace(
            Calling(self.machine),
            'pidPID:a.out:either:return { @[arg1 == 7 ? "seven" : arg1 == 8 ? "eight" : "other"] = count(); } '
            'pidPID:a.out:jumps:return,pidPID:a.out:recurses:return { @[probefunc] = count(); } '
            'pidPID:a.out:loads:return { @value = sum(arg1); } END { printa("sum %@d\\n", @value); }')
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(counts(outcome.stdout), {
            "seven": CALLS // 2, "eight": CALLS // 2, "jumps": said["jumps"], "recurses": said["recurses"],
            "sum": sum(40 + 2 * n for n in range(CALLS))})

    def test_of_arguments(self):
        outcome, _ = self.trace(Calling(self.machine),
                                'pidPID:a.out:pushes:entry { @one = sum(arg0); @other = sum(arg1); } '
                                'END { printa("one %@d\\n", @one); printa("other %@d\\n", @other); }')
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(counts(outcome.stdout), {"one": sum(range(CALLS)), "other": CALLS})

    def test_of_arguments_on_the_stack(self):
        outcome, _ = self.trace(Calling(self.machine),
                                'pidPID:a.out:takes:entry { @sixth = sum(arg5); @seventh = sum(arg6); '
                                '@eighth = sum((int64_t)arg7); } END { printa("sixth %@d\\n", @sixth); '
                                'printa("seventh %@d\\n", @seventh); printa("eighth %@d\\n", @eighth); }',
                                options=["-x", "record=yes"])
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(outcome.stdout.split()[-6:],
                         ["sixth", str(5 * CALLS), "seventh", str(6 * CALLS), "eighth", str(-sum(range(CALLS)))])

    def test_of_values_of_traps_that_wait(self):
        """Of four threads: a copy of a mailbox that mixes two traps would be a value off."""
        outcome, said = self.trace(
            Calling(self.machine, threads=4),
            'pidPID:a.out:adds:return { @left = sum(uregs[R_RAX]); @lefts = count(); } '
            'pidPID:a.out:pushes:entry { @in = sum(uregs[R_RDI]); } END { printa("left %@d\\n", @left); '
            'printa("lefts %@d\\n", @lefts); printa("in %@d\\n", @in); }')
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(counts(outcome.stdout), {
            "left": 4 * sum(n + 3 + n + 1 for n in range(CALLS)), "lefts": said["adds"], "in": 4 * sum(range(CALLS))})

    def check_each_instruction(self, function, program="calls", options=()):
        """Returns how many probes it has, but entry and return."""
        calling = Calling(self.machine, program=program)
        listed = self.machine.run(f"pid{calling.pid}:a.out:{function}:", ["-l"])
        names = re.findall(rf" {function} +([0-9a-f]+)$", listed.stdout, re.MULTILINE)
        self.assertGreater(len(names), 1, listed)
        outcome, said = self.trace(calling, f"pidPID:a.out:{function}: {{ @[probename] = count(); }}", options=options)
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(counts(outcome.stdout), {name: said[function] for name in [*names, "entry", "return"]})
        return len(names)

    def test_of_each_instruction(self):
        self.check_each_instruction("pushes")

    def test_of_each_instruction_of_a_function_that_calls(self):
        """The program ends where a callee returns to, or unwinds to, another place than the call."""
        for name, text in ("calls", static_program("calls.c")), ("calls-pie", position_independent()):
            count = instructions(text, "calls")
            self.assertEqual(self.check_each_instruction("calls", name), count)
            self.assertEqual(self.check_each_instruction("calls", name, options=["-x", "record=yes"]), count)


class Target(Case):
    def test_is_the_guests_process_and_its_end_ends_tracing(self):
        calling = Calling(self.machine)
        with self.machine.trace(begin("pid$target:a.out:adds:entry { @[pid == $target] = count(); }"),
                                ["-q", "-p", str(calling.pid)]) as running:
            started(running)
            said = calling.go()
            outcome = running.finish()
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(outcome.stdout.split(), ["1", str(said["adds"])])

    def test_is_told_to_be_missing(self):
        outcome = self.machine.run("BEGIN {}", ["-p", "99999"])
        self.assertEqual((outcome.status, outcome.stderr), (1, "ringside: -p: the guest has no process 99999\n"))


class CountsOfOld(Counts):
    IMAGE, CPUS = "debian-6.1", 1


class Files(Case):
    def test_are_read_and_copied_as_they_were(self):
        before = self.guest("md5sum < /bin/calls")
        calling = Calling(self.machine)
        with self.machine.trace(begin(ENTRIES.replace("PID", str(calling.pid))), ["-q"]) as running:
            started(running)
            self.assertEqual(self.guest("md5sum < /bin/calls"), before)
            self.guest("cp /bin/calls /tmp/copy")
            outcome = end(running)
        self.assertIn("a process of the guest reads or writes a file with probes", outcome.stderr)
        self.assertEqual(self.guest("md5sum < /tmp/copy"), before)
        self.assertEqual(self.guest("md5sum < /bin/calls"), before)
        self.check_counts(calling)
        self.assertEqual(self.guest("md5sum < /bin/calls"), before)

    def test_may_be_touched(self):
        before = self.guest("md5sum < /bin/calls")
        self.check_counts(Calling(self.machine), meanwhile=lambda: self.guest("touch /bin/calls; chmod 700 /bin/calls"))
        self.assertEqual(self.guest("md5sum < /bin/calls"), before)
        self.check_counts(Calling(self.machine))

    def test_are_watched_beside_probes_at_the_same_places(self):
        calling = Calling(self.machine)
        program = ("fbt::filemap_read:entry,fbt::shmem_file_read_iter:entry"
                   ' /execname == "workload"/ { @["reads"] = count(); } pidPID:a.out:adds:entry { @["adds"] = count(); }')
        outcome, said = self.trace(calling, program, meanwhile=lambda: self.guest("workload --reads 100 --file /bin/workload"))
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        found = counts(outcome.stdout)
        self.assertEqual(found["adds"], said["adds"])
        self.assertGreaterEqual(found.get("reads", 0), 100)

    def test_are_as_they_were_once_a_killed_ringside_was_cleaned_up_after(self):
        before = self.guest("md5sum < /bin/calls")
        calling = Calling(self.machine)
        with self.machine.trace(begin(ENTRIES.replace("PID", str(calling.pid)))) as running:
            started(running)
            running.process.kill()
        said = calling.go()
        self.assertEqual(said["pushes"], CALLS)
        outcome = ringside.run(machine=False, verb=["clean", f"qmp:{self.machine.path}"])
        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(self.guest("md5sum < /bin/calls"), before)
        self.check_counts(Calling(self.machine))


class Libraries(Case):
    """Probes of all processes, on a library and on the C library."""

    ADDS = "pid*:libadds.so:library_adds:entry { @ = count(); }"

    def add_to(self, archive):
        library = dynamic_program("library.c", "-shared", "-fPIC", "-DLIBRARY")
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "libadds.so").write_bytes(library)
            program = dynamic_program("library.c", f"-L{folder}", "-Wl,--no-as-needed", "-ladds", "-Wl,-rpath,/lib")
        archive.file("lib/libadds.so", library, 0o755)
        archive.file("bin/library", program, 0o755)

    def check_calls(self, *commands):
        """Each call of all is counted. The first one has the library mapped when tracing begins."""
        self.guest("rm -f /tmp/go /tmp/first; library 1 > /tmp/first & sleep 0.1")
        with self.machine.trace(begin(self.ADDS), ["-q"]) as running:
            started(running)
            said = self.guest("touch /tmp/go; while [ ! -s /tmp/first ]; do sleep 0.1; done; cat /tmp/first; " +
                              "; ".join(commands))
            outcome = end(running)
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(sum(map(int, outcome.stdout.split())),
                         sum(map(int, re.findall(r"^calls (\d+)", said, re.MULTILINE))))

    def test_count_in_processes_that_come_later(self):
        self.check_calls("library 1000", "library 1000", "(library 500 & library 500 & wait)")

    def test_count_while_processes_fork_and_run_others_and_signals_come(self):
        self.check_calls("library 20000 churn", "(library 5000 churn & library 5000 churn & wait)")

    def test_count_a_million_of_threads_of_several_processes_among_others_that_come_and_go(self):
        calling = Calling(self.machine, calls=7_500, threads=8, processes=3)
        self.guest("rm -f /tmp/enough; (while [ ! -e /tmp/enough ]; do library 100 churn > /dev/null; done) > /dev/null"
                   " 2>&1 &")
        every = ENTRIES.replace("pidPID", "pid*").replace("a.out", "calls")
        with self.machine.trace(begin(every), ["-q", "-x", "bufsize=16m"]) as running:
            started(running)
            said = calling.go()
            outcome = end(running)
        self.guest("touch /tmp/enough")
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertGreaterEqual(sum(said.values()), 1_000_000)
        self.assertEqual(counts(outcome.stdout), said)

    def test_count_in_a_process_that_has_a_copy_of_the_page(self):
        self.check_calls("library 1000 copy", "library 1000")

    def test_leave_a_process_with_a_copy_alone_when_tracing_ends(self):
        self.guest("rm -f /tmp/go /tmp/went; library 1 & sleep 0.1; "
                   "(library 300000 copy > /tmp/copy; echo $? > /tmp/went) &")
        with self.machine.trace(begin(self.ADDS), ["-q"]) as running:
            started(running)
            self.guest("touch /tmp/go")
            time.sleep(0.3)  # it calls meanwhile; where it is just then does not matter
            end(running)
        said = self.guest("while [ ! -e /tmp/went ]; do sleep 0.1; done; cat /tmp/copy /tmp/went")
        self.assertEqual(said, "calls 300000\n0\n")

    def test_count_in_all_files_of_one_name(self):
        self.guest("mkdir /other; cp /lib/libadds.so /other; rm -f /tmp/go /tmp/one /tmp/other; "
                   "library 10 > /tmp/one & LD_LIBRARY_PATH=/other library 500 > /tmp/other & sleep 0.1")
        with self.machine.trace(begin(self.ADDS), ["-q"]) as running:
            started(running)
            self.guest("touch /tmp/go; while [ ! -s /tmp/one ] || [ ! -s /tmp/other ]; do sleep 0.1; done")
            outcome = end(running)
        self.assertEqual((outcome.status, outcome.stderr, outcome.stdout.split()), (0, "", ["510"]), outcome)

    def test_of_a_file_that_was_touched_are_taken_out(self):
        self.guest("cp /lib/libadds.so /tmp/before; rm -f /tmp/go; library 10 & sleep 0.1")
        with self.machine.trace(begin(self.ADDS), ["-q"]) as running:
            started(running)
            self.guest("touch /lib/libadds.so; cp /lib/libadds.so /tmp/copy; cmp /tmp/copy /tmp/before; "
                       "touch /tmp/go; wait")
            end(running)
        self.guest("cmp /lib/libadds.so /tmp/before && library 10")

    def test_in_a_copy_of_the_page_outlive_a_read_of_the_file(self):
        self.guest("rm -f /tmp/go /tmp/went; library 1 & sleep 0.1; "
                   "(library 300000 copy > /tmp/copy; echo $? > /tmp/went) &")
        with self.machine.trace(begin(self.ADDS), ["-q"]) as running:
            started(running)
            self.guest("touch /tmp/go; sleep 0.1; cat /lib/libadds.so > /dev/null")
            said = self.guest("while [ ! -e /tmp/went ]; do sleep 0.1; done; cat /tmp/copy /tmp/went")
            end(running)
        self.assertEqual(said, "calls 300000\n0\n")

    def test_of_the_c_library_by_the_hundred(self):
        before = self.guest("md5sum < /lib/libc.so.6")
        self.guest("rm -f /tmp/go; library 1 > /tmp/first & sleep 0.1")
        listed = self.machine.run("pid*:libc.so.6::entry", ["-l"])
        with self.machine.trace(begin("pid*:libc.so.6::entry { @[probefunc] = count(); }"), ["-q"]) as running:
            started(running)
            self.guest("touch /tmp/go; wait; library 10 churn")
            outcome = end(running)
        self.assertEqual(outcome.status, 0, outcome)
        # Functions without a probe are told.
        told = re.fullmatch(r"ringside: pid\*:libc\.so\.6::entry does not see all that happens: (\d+) of (\d+) probes "
                            r"are missing, libc\.so\.6:\w+:entry for one: .+ \(-l -v tells each\)\n", outcome.stderr)
        self.assertTrue(told, outcome.stderr)
        self.assertEqual(int(told[2]) - int(told[1]), listed.stdout.count(" entry\n"), listed.stdout[-500:])
        found = counts(outcome.stdout)
        self.assertEqual(found.get("__libc_fork", found.get("fork")), 4, found)
        self.assertEqual(self.guest("md5sum < /lib/libc.so.6"), before)
        self.guest("rm /tmp/go; touch /tmp/go; library 10 churn")


class Replaced(Case):
    """A library that another file takes the place of while it is traced."""

    ADDS, add_to = Libraries.ADDS, Libraries.add_to

    def test_files_have_probes_once_a_process_maps_the_new_one(self):
        before = self.guest("cp /lib/libadds.so /lib/new; md5sum < /lib/new")
        self.guest("rm -f /tmp/go /tmp/first /tmp/second; library 10 > /tmp/first & sleep 0.1")
        with self.machine.trace(begin(self.ADDS), ["-q"]) as running:
            started(running)
            self.guest("mv /lib/new /lib/libadds.so; library 500 > /tmp/second & true")
            self.assertIn("a process has mapped another file libadds.so: 1 more place of probes",
                          running.process.stderr.readline())
            self.guest("touch /tmp/go; while [ ! -s /tmp/first ] || [ ! -s /tmp/second ]; do sleep 0.1; done; "
                       "library 1000 > /tmp/third")
            self.assertEqual(self.guest("md5sum < /lib/libadds.so"), before)
            outcome = end(running)
        said = self.guest("cat /tmp/first /tmp/second /tmp/third")
        self.assertEqual(re.findall(r"^calls (\d+)", said, re.MULTILINE), ["10", "500", "1000"])
        self.assertEqual((outcome.status, outcome.stdout.split()), (0, ["1510"]), outcome)
        self.assertIn("a process of the guest reads or writes a file with probes: 1 of them are away", outcome.stderr)
        self.assertEqual(self.guest("md5sum < /lib/libadds.so; library 10"), before + "calls 10\n")


class ReplacedOfOld(Replaced):
    IMAGE, CPUS = "debian-6.1", 1


class Refusals(Case):
    def add_to(self, archive):
        archive.file("bin/throws", dynamic_program("throws.cc", "-static"), 0o755)

    def test_say_why(self):
        throws = re.search(r"process (\d+)", self.guest("throws 1"))[1]
        calling = Calling(self.machine)
        for program, why in {
                "pid99999:a.out:adds:entry {}": "the guest has no process 99999",
                f"pid{calling.pid}:libc.so.6:malloc:entry {{}}": "has no module libc.so.6 mapped; it has: calls",
                f"pid{calling.pid}:a.out:no_such:entry {{}}": "names a function no_such",
                f"pid{calling.pid}:a.out:pushed:entry {{}}": "did you mean pushes?",
                f"pid{calling.pid}:a.out:memcpy:entry {{}}": "a resolver may pick one of __memcpy_*, as __memcpy_",
                f"pid{calling.pid}:a.out:adds:7fff {{}}": "no instruction begins there; a probe's name is entry, return",
                f"pid{throws}:a.out:fail:entry {{}}": "did you mean _Z4faill? It is fail(long)",
                "pid$target:a.out:adds:entry {}": "$target is 0: name a process of the guest by -p PID",
        }.items():
            with self.subTest(program):
                self.assertIn(why, self.refused(program))


class Isolated(Counts):
    """A guest whose page tables are not those of its processes."""
    APPEND = "pti=on"


class IsolatedOfOld(Isolated):
    IMAGE, CPUS = "debian-6.1", 1


class NotOptimized(Case):
    """A program that the compiler leaves no unused bytes in."""

    EACH = ("pidPID:a.out:{0}:entry {{ @[probefunc] = count(); }} pidPID:a.out:{0}:return {{ @back[probefunc] = count(); }}"
            " END {{ printa(\"%s %@d\\n\", @); printa(\"back_%s %@d\\n\", @back); }}")

    def add_to(self, archive):
        archive.file("bin/unoptimized", dynamic_program("unoptimized.c", "-O0"), 0o755)

    def test_entries_and_returns(self):
        for function in ("either", "recurses", "takes", "outer", "[!_w]*"):
            with self.subTest(function):
                calling = Calling(self.machine, program="unoptimized")
                outcome, said = self.trace(calling, self.EACH.format(function))
                # Of all functions, those of the compiler's own files have gaps, which are told.
                self.assertEqual(outcome.status, 0, outcome)
                self.assertEqual(outcome.stderr == "", function in said, outcome)
                expected = {name: count for name, count in said.items() if function in (name, "[!_w]*")}
                found = counts(outcome.stdout)
                self.assertEqual({name: found.get(name) for name in expected}, expected, outcome)
                self.assertEqual({name: found.get(f"back_{name}") for name in expected}, expected, outcome)

    def test_arguments_values_and_callers(self):
        outcome, _ = self.trace(
            Calling(self.machine, program="unoptimized"),
            "pidPID:a.out:takes:entry { @sum = sum(arg1 + arg5 + arg6 + arg7 + arg0); @[ufunc(ucaller)] = count(); }"
            " pidPID:a.out:either:return { @value = sum(arg1); }"
            ' END { printa("sum %@d\\n", @sum); printa("value %@d\\n", @value); printa("%A %@d\\n", @); }')
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(outcome.stdout.split(), ["sum", str(2 * CALLS * 12), "value", str(15 * CALLS),
                                                  "unoptimized`outer", str(2 * CALLS)])

    def test_two_files_of_the_same_text(self):
        """The stub tells their pages apart, or one of them has no probe, which is told: no count is wrong."""
        self.guest("cp /bin/unoptimized /bin/same")
        first = Calling(self.machine, program="unoptimized")
        second = Calling(self.machine, program="same")
        program = " ".join(f"pid{pid}:a.out:takes:entry,pid{pid}:a.out:takes:return "
                           '{ @[execname, probename] = count(); }' for pid in (first.pid, second.pid))
        with self.machine.trace(begin(program)) as running:
            started(running)
            said = second.go()
            self.guest("while pidof unoptimized same > /dev/null; do sleep 0.1; done")
            outcome = end(running)
        self.assertEqual(outcome.status, 0, outcome)
        found = re.findall(r"(unoptimized|same)\s+(entry|return)\s+(\d+)", outcome.stdout)
        self.assertEqual({int(count) for _, _, count in found}, {said["takes"]}, outcome)
        if len(found) < 4:
            self.assertIn("no probe", outcome.stderr)

    def test_beside_probes_on_instructions(self):
        """Of all that have room, in the same page."""
        calling = Calling(self.machine, 100, program="unoptimized")
        outcome, said = self.trace(calling, "pidPID:a.out:takes:,pidPID:a.out:recurses: { @other = count(); } "
                                   + self.EACH.format("either"))
        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(counts(outcome.stdout), {"either": said["either"], "back_either": said["either"]}, outcome)

    def test_traps_that_wait(self):
        calling = Calling(self.machine, 200, program="unoptimized")
        outcome, said = self.trace(calling, "pidPID:a.out:takes:entry { @[ustack(3)] = count(); } "
                                            "pidPID:a.out:takes:return { @back[ustack(3)] = count(); }")
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        stacks = re.findall(r"unoptimized`takes\S*\s+unoptimized`outer\S*\s+unoptimized`work\S*\s+(\d+)", outcome.stdout)
        self.assertEqual(stacks, [str(said["takes"])] * 2, outcome)

    def test_are_as_they_were_once_a_killed_ringside_was_cleaned_up_after(self):
        before = self.guest("md5sum < /bin/unoptimized")
        calling = Calling(self.machine, program="unoptimized")
        with self.machine.trace(begin(self.EACH.format("[!_]*").replace("PID", str(calling.pid)))) as running:
            started(running)
            running.process.kill()
        said = calling.go()
        self.assertEqual(said["takes"], 2 * CALLS)
        outcome = ringside.run(machine=False, verb=["clean", f"qmp:{self.machine.path}"])
        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(self.guest("md5sum < /bin/unoptimized"), before)


class NotOptimizedOfOld(NotOptimized):
    IMAGE, CPUS = "debian-6.1", 1


class FourLevels(Counts):
    """A guest of many CPUs, whose page tables have four levels."""
    CPUS, APPEND = 4, "no5lvl"


if __name__ == "__main__":
    unittest.main()
