"""Static probes of a guest's processes (USDT): counts, arguments and semaphores are the program's own."""

import re
import unittest

import ringside
from made_images import add_libraries, dynamic_program, static_program
from test_attach_qmp import begin, end, started
from test_pid import Case, counts

CALLS = 1000
EACH = ('{0}:static_probes::asked {{ @["asked"] = count(); }}'
        ' {0}:static_probes::counted {{ @["counted"] = count(); }}'
        ' {0}:static_probes::twice-passed {{ @["twice"] = count(); }}')


class Static(Case):
    """A program with probes that have semaphores, which waits for its word."""

    PROGRAM = "static_probes"

    def add_to(self, archive):
        archive.file(f"bin/{self.PROGRAM}", self.compiled(), 0o755)

    def compiled(self):
        return static_program("static_probes.c")

    def begin_program(self, calls=CALLS):
        said = self.guest(f"rm -f /tmp/go /tmp/said; {self.PROGRAM} {calls}")
        return re.search(r"process (\d+)", said)[1]

    def go(self):
        return counts(self.guest("touch /tmp/go; while [ ! -e /tmp/said ]; do sleep 0.1; done; cat /tmp/said"))

    def traced(self, program, options=(), meanwhile=None):
        """Its outcome, once the program has done all, and what that one says."""
        with self.machine.trace(begin(program), ["-q", *options]) as running:
            started(running)
            if meanwhile:
                meanwhile()
            said = self.go()
            return end(running), said


class Counts(Static):
    def semaphores(self):
        """As a program that starts now finds them."""
        return counts(self.guest("static_probes"))

    def check(self, outcome, expected):
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(counts(outcome.stdout), expected)

    def test_of_one_process_and_its_semaphores(self):
        pid = self.begin_program()
        outcome, said = self.traced(EACH.format(f"sample{pid}"))
        self.assertEqual((said["asked"], said["semaphore"]), (CALLS, 1))
        self.check(outcome, {"asked": CALLS, "counted": CALLS, "twice": 2 * CALLS})
        self.assertEqual(self.semaphores(), {"asked": 0, "counted": 0})

    def test_of_all_processes_also_those_that_start_later(self):
        self.begin_program()
        raised = []
        outcome, said = self.traced(EACH.format("sample*"), meanwhile=lambda: raised.append(self.semaphores()))
        self.assertEqual(raised, [{"asked": 1, "counted": 1}])
        self.check(outcome, {"asked": CALLS, "counted": CALLS, "twice": 2 * CALLS})
        self.assertEqual(said["semaphore"], 1)
        self.assertEqual(self.semaphores(), {"asked": 0, "counted": 0})

    def test_of_arguments_with_sizes_and_signs(self):
        pid = self.begin_program()
        outcome, _ = self.traced(
            f'sample{pid}:::counted {{ @small = sum((int64_t)arg0); @byte = sum(arg1); @[copyinstr(arg2)] = count(); '
            '@kept = sum((int64_t)arg3); @seven = sum(arg4); }'
            f' sample{pid}:::twice-passed {{ @passed = sum((int64_t)arg0); }}'
            ' END { printa("small %@d\\n", @small); printa("byte %@d\\n", @byte); printa("kept %@d\\n", @kept); '
            'printa("seven %@d\\n", @seven); printa("passed %@d\\n", @passed); '
            'printa("%s %@d\\n", @); }')
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        total = sum(range(CALLS))
        numbers = {name: int(number) for name, number in re.findall(r"^(\w+) (-?\d+)$", outcome.stdout, re.MULTILINE)}
        self.assertEqual(numbers, {"small": -total, "byte": sum(n % 256 for n in range(CALLS)), "kept": -total,
                                   "seven": 7 * CALLS, "even": CALLS // 2, "odd": CALLS // 2,
                                   "passed": 3 * total + sum(3 * n * (n + 1) // 2 for n in range(CALLS))})

    def test_are_listed_with_their_arguments(self):
        pid = self.begin_program()
        listed = self.machine.run(f"sample{pid}:::", ["-l", "-v"])
        self.assertEqual(listed.status, 0, listed)
        rows = re.findall(rf"sample{pid} +static_probes +(\w+) +([\w-]+)$", listed.stdout, re.MULTILINE)
        self.assertEqual(sorted(rows), [("pass", "asked"), ("pass", "counted"), ("twice", "twice-passed")], listed)
        self.assertRegex(listed.stdout, r"in the file at 0x[0-9a-f]+: -?8@%r\w+ 8@%r\w+\n")

    def test_the_file_is_as_it_was_while_probes_stand_in_it(self):
        before = self.guest("md5sum < /bin/static_probes")
        pid = self.begin_program()
        with self.machine.trace(begin(EACH.format(f"sample{pid}")), ["-q"]) as running:
            started(running)
            self.assertEqual(self.guest("md5sum < /bin/static_probes"), before)
            outcome = end(running)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertIn("reads or writes a file with probes", outcome.stderr)
        self.assertEqual(self.guest("md5sum < /bin/static_probes"), before)
        self.assertEqual(self.semaphores(), {"asked": 0, "counted": 0})

    def test_semaphores_of_a_killed_ringside_go_down_again(self):
        before = self.guest("md5sum < /bin/static_probes")
        pid = self.begin_program()
        with self.machine.trace(begin(EACH.format(f"sample{pid}"))) as running:
            started(running)
            running.process.kill()
        self.assertEqual(self.semaphores(), {"asked": 1, "counted": 1})
        outcome = ringside.run(machine=False, verb=["clean", f"qmp:{self.machine.path}"])
        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(self.semaphores(), {"asked": 0, "counted": 0})
        said = self.go()
        self.assertEqual((said["counted"], said["asked"], said["semaphore"]), (CALLS, 0, 0))
        self.assertEqual(self.guest("md5sum < /bin/static_probes"), before)

    def test_a_pid_probe_at_the_same_place_changes_nothing(self):
        pid = self.begin_program()
        outcome, said = self.traced(f'pid{pid}:a.out:pass: {{ @all = count(); }} ' + EACH.format(f"sample{pid}"))
        self.assertEqual((outcome.status, said["asked"]), (0, CALLS), outcome)
        self.assertEqual({name: number for name, number in counts(outcome.stdout).items() if name in said},
                         {"asked": CALLS, "counted": CALLS, "twice": 2 * CALLS})
        self.assertEqual(self.semaphores(), {"asked": 0, "counted": 0})

    def test_a_program_that_starts_after_its_file_was_read(self):
        """Its semaphores are down for a while then, and it has copied them so."""
        self.begin_program()
        with self.machine.trace(begin(EACH.format("sample*")), ["-q"]) as running:
            started(running)
            first = self.go()
            self.guest("md5sum < /bin/static_probes")
            self.begin_program()
            self.guest("until [ $(static_probes | grep -c 1) = 2 ]; do sleep 0.2; done")
            second = self.go()
            outcome = end(running)
        self.assertEqual((first["asked"], second["asked"]), (CALLS, CALLS), outcome)
        self.assertEqual(counts(outcome.stdout), {"asked": 2 * CALLS, "counted": 2 * CALLS, "twice": 4 * CALLS})

    def test_another_file_in_the_places_of_the_first_stays_as_it_is(self):
        pid = self.begin_program()
        with self.machine.trace(begin(EACH.format(f"sample{pid}")), ["-q"]) as running:
            started(running)
            self.go()
            self.guest(f"kill {pid}; while [ -e /proc/{pid} ]; do sleep 0.1; done; "
                       "tr '\\000' 'A' </bin/static_probes >/tmp/other; md5sum </tmp/other >/tmp/sum; "
                       "cat /tmp/other >/bin/static_probes; rm /tmp/other")
            outcome = end(running)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(self.guest("md5sum </bin/static_probes"), self.guest("cat /tmp/sum"))

    def test_what_has_no_probe_is_refused(self):
        pid = self.begin_program()
        for description, why in (
                (f"sampel{pid}:::", "no provider is called so; the static probes (USDT) that are mapped have the providers sample"),
                ("sample99999:::", "no provider is called so, and the guest has no process of this number with memory of its own"),
                ("sample1:::", "no provider is called so, and no static probe (USDT) is in the files that are mapped, as far as their notes are in the "
                               "guest's memory or in --sysroot")):
            self.assertEqual(self.refused(description), f"ringside: probe description {description} does not match any "
                                                        f"probes: {why} (in '{description}')")
        self.go()


class CountsOfOld(Counts):
    IMAGE, CPUS = "debian-6.1", 1


class Thrown(Static):
    """The C++ library's own probes, which have no semaphores."""

    PROGRAM = "throws"

    def compiled(self):
        return dynamic_program("throws.cc")

    def add_to(self, archive):
        super().add_to(archive)
        add_libraries(archive, "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1")

    def test_exceptions_are_counted_where_they_are_thrown_and_caught(self):
        pid = self.begin_program()
        outcome, said = self.traced(
            f'libstdcxx{pid}:libstdc++.so.6::throw {{ @[probename] = count(); @[arg0 != 0 ? "object" : "none"] = count(); }}'
            f" libstdcxx{pid}:libstdc++.so.6::catch {{ @[probename] = count(); }}")
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(counts(outcome.stdout), {**said, "object": CALLS})


if __name__ == "__main__":
    unittest.main()
