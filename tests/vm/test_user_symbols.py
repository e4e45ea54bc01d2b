"""Names of what processes run: modules, dynamic symbols, offsets; against the process's own word."""

import json
import pathlib
import re
import tempfile
import unittest

import ringside
from made_images import Archive, dynamic_program, initrd_with
from test_attach_qmp import Machine, begin, end, started

# Reads of the program whose functions and library are known by dynamic symbols.
READ = 'syscall::read:entry /execname == "dynamic" && arg2 == 777/'
# They go on being recorded for a while, and the process lives a little longer.
COMMAND = "dynamic 200 1"


class UserSymbols:
    """The tests; the classes at the end say on which guest. One boot each."""

    image = ""
    cpus = 1

    def trace(self, program, command, *options):
        outcome = ringside.run(program, image=self.image, cpus=self.cpus, command=command,
                               options=("-q", *options))
        self.assertEqual(outcome.status, 0, outcome)
        self.assertNotIn("error on enabled probe", outcome.stderr, outcome)
        return outcome

    def test_a_stack_of_a_process_that_has_ended(self):
        outcome = self.trace(
            READ + ' { @s[ustack()] = count(); @sym[usym(uregs[R_RIP])] = count();'
            ' @mod[umod(uregs[R_RIP])] = count(); @func[ufunc(ucaller)] = count();'
            ' @addr[uaddr(ucaller)] = count(); @stack[umod(uregs[R_RSP])] = count(); }'
            ' END { printa("<s>%k%@d\\n</s>\\n", @s); printa("sym %A %@d\\n", @sym);'
            ' printa("mod %A %@d\\n", @mod); printa("func %A %@d\\n", @func);'
            ' printa("addr %A %@d\\n", @addr); printa("stack %A %@d\\n", @stack); }', COMMAND)

        rows = re.findall(r"<s>\n(.*?)</s>", outcome.stdout, re.DOTALL)
        self.assertEqual(len(rows), 1, outcome)
        *frames, count = [row.strip() for row in rows[0].splitlines()]
        self.assertEqual(count, "200", outcome)
        # read() has no frame of its own; its unwind table tells who called it.
        self.assertEqual([re.sub(r"\+0x[0-9a-f]+$", "+", frame) for frame in frames[:4]],
                         ["libc.so.6`read+", "dynamic`dyn_inner+", "dynamic`dyn_outer+", "dynamic`main+"],
                         outcome)
        counts = outcome.counts()
        self.assertEqual(counts["sym libc.so.6`read"], 200, outcome)
        self.assertEqual(counts["mod libc.so.6"], 200, outcome)
        self.assertEqual(counts["func dynamic`dyn_inner"], 200, outcome)
        self.assertEqual(counts[f"addr {frames[1]}"], 200, outcome)
        self.assertRegex(outcome.stdout, r"\nstack 0x7f[0-9a-f]{10} 200\n")

    def test_offsets_are_from_where_the_program_has_its_functions(self):
        outcome = self.trace(READ + " { ustack(3); printf(\"%A\", uregs[R_RIP]); }", COMMAND, "-O",
                             "jsonl")

        lines = outcome.stdout.splitlines()
        places = {name: int(place, 16) for name, place in
                  (line.split() for line in lines if re.match(r"\w+ 0x", line))}
        records = [json.loads(line) for line in lines if line.startswith("{")]
        stacks = [value["ustack-frames"] for record in records for value in
                  record.get("output", []) if "ustack-frames" in value]
        self.assertEqual(len(stacks), 200, outcome)
        for frame in stacks[-1][:2]:
            self.assertEqual(int(frame["address"], 16) - frame["offset"], places[frame["symbol"]],
                             outcome)
            self.assertEqual(frame["name"],
                             f"{frame['module']}`{frame['symbol']}+{frame['offset']:#x}")
        self.assertEqual([frame["module"] for frame in stacks[-1]],
                         ["libc.so.6", "dynamic", "dynamic"])
        self.assertIn(f"\"{stacks[-1][0]['name']}\"", outcome.stdout)

    def test_a_static_program_is_known_by_its_file(self):
        outcome = self.trace(
            'syscall::*nanosleep:entry /execname == "sleep"/ { printf("<u>"); ustack(1);'
            ' printf("</u>\\n%A %x\\n", umod(uregs[R_RIP]), uregs[R_RIP]); }', "sleep 1")

        found = re.search(r"<u>\n {14}busybox`0x([0-9a-f]+)\n</u>\nbusybox ([0-9a-f]+)\n",
                          outcome.stdout)
        self.assertTrue(found, outcome)
        self.assertEqual(found[1], found[2])

    def test_noresolve_leaves_addresses_unnamed(self):
        outcome = self.trace(
            READ + ' { @s[ustack(2)] = count(); @sym[usym(uregs[R_RIP])] = count();'
            ' @mod[umod(uregs[R_RIP])] = count(); }'
            ' END { printa("<s>%k%@d\\n</s>\\n", @s); printa("sym %A %@d\\n", @sym);'
            ' printa("mod %A %@d\\n", @mod); }', COMMAND, "-x", "noresolve")

        self.assertRegex(outcome.stdout,
                         r"<s>\n *0x7f[0-9a-f]{10}\n *0x[0-9a-f]{12}\n *200\n</s>", outcome)
        self.assertRegex(outcome.stdout, r"\nsym 0x7f[0-9a-f]{10} 200\n", outcome)
        self.assertRegex(outcome.stdout, r"\nmod 0x7f[0-9a-f]{10} 200\n", outcome)
        self.assertNotIn("`", outcome.stdout, outcome)


class UserSymbolsOn61(UserSymbols, unittest.TestCase):
    image = "debian-6.1"


class UserSymbolsOn612(UserSymbols, unittest.TestCase):
    image = "debian-6.12"
    cpus = 2


class CodeMadeAtRunTime(unittest.TestCase):
    """Stacks through code of no file, whose names the process writes down (made_code.c)."""

    IMAGE, CPUS = "debian-6.12", 2

    def test_has_the_names_of_the_processs_map(self):
        archive = Archive()
        archive.file("bin/made_code", dynamic_program("made_code.c"), 0o755)
        initrd = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "initrd"
        initrd.write_bytes(initrd_with(self.IMAGE, archive))
        machine = self.enterContext(Machine(self.IMAGE, self.CPUS, initrd=initrd))
        # A file system of its own, as most guests have it there.
        status, said = machine.port.run("mount -t tmpfs tmpfs /tmp; made_code 100 > /said & "
                                        "while [ ! -s /said ]; do usleep 100000; done; cat /said")
        self.assertEqual(status, 0, said)
        pid = re.search(rb"process (\d+)", said)[1].decode()
        program = begin(f"pid{pid}:a.out:reached:entry {{ @[jstack(3)] = count(); }}")
        with machine.trace(program, ["-q"]) as running:
            started(running)
            machine.port.run("touch /tmp/go; until grep -q late /tmp/perf-*.map; do usleep 100000; done; sleep 1")
            outcome = end(running)
        machine.port.run("touch /tmp/stop")
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(re.findall(r" +made_code`reached\n +(\S.*)\n +made_code`main\+0x\w+\n +(\d+)\n",
                                    outcome.stdout),
                         [(f"perf-{pid}.map`LazyCompile:*early /srv/app.js:7+0x10", "100"),
                          (f"perf-{pid}.map`late+0x10", "100")], outcome)


class CodeMadeAtRunTimeOfOld(CodeMadeAtRunTime):
    IMAGE, CPUS = "debian-6.1", 1


if __name__ == "__main__":
    unittest.main()
