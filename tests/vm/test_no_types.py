"""A kernel without types (BTF), as many microVMs have.

It boots with them, by a bzImage and with KASLR; then the header of its BTF is zeroed in its memory, so that
whoever attaches finds none. Truth is the workload's own word. All of it happens in one guest.
"""

import subprocess
import unittest

import guest
import ringside
from patient import Debugger, why
from test_attach_qmp import Machine, begin, end, started

READS = 2000
HEADER = 24  # bytes
MINE = '/execname == "workload"/'
COUNT = (f'syscall::read:entry {MINE} {{ @["calls"] = count(); }}'
         f' syscall::read:entry {MINE[:-1]} && arg0 < 10 && pid > 1/ {{ @["arguments"] = count(); }}'
         f' fbt::vfs_read:entry {MINE} {{ @["entries"] = count(); @stacks[stack(2)] = count(); }}'
         f' fbt::vfs_read:return {MINE} {{ @["returns"] = count(); }}'
         ' profile-19 { @["samples"] = count(); }')


class NoTypes(unittest.TestCase):
    image, other = "debian-6.12", "debian-6.1"

    def setUp(self):
        self.machine = self.enterContext(Machine(self.image, cpus=2, append=guest.PATIENT))

    def take_types_away(self):
        """The kernel's text and data are as before."""
        status, said = self.machine.port.run("grep -w __start_BTF /proc/kallsyms")
        self.assertEqual(status, 0, said)
        address = int(said.split()[0], 16)
        path = self.machine.folder / "gdb"
        self.machine.owner.human(f"gdbserver unix:{path},server=on,wait=off")
        debugger = Debugger(path)
        debugger.ask_why_stopped()
        self.assertIn(b"OK", debugger(b"M%x,%x:%s" % (address, HEADER, b"00" * HEADER)))
        debugger.send(b"c")
        debugger.close()
        self.machine.owner.human("gdbserver none")

    def kernel(self, image):
        return guest.images_folder() / image / "vmlinuz"

    def count(self, *options):
        """A trace of the workload, which is counted exactly; gives its outcome."""
        with self.machine.trace(begin(COUNT), ["-q", *options]) as running:
            started(running)
            status, said = self.machine.port.run(f"workload --reads {READS}")
            outcome = end(running)
        self.assertEqual((status, outcome.status), (0, 0), outcome)
        counts = outcome.counts()
        true = ringside.Outcome(0, said.decode(), "").counts()["read"]
        self.assertEqual([counts[name] for name in ("calls", "arguments", "entries", "returns")],
                         [true] * 4, outcome)
        self.assertGreater(counts["samples"], 0, outcome)
        self.assertRegex(outcome.stdout, r"vmlinux`ksys_read\S*\n\s+vmlinux`do_syscall_64", outcome)
        return outcome

    def refusal(self, program, *options):
        outcome = self.machine.run(program, ["-q", *options])
        self.assertEqual(outcome.status, 1, outcome)
        return outcome.stderr

    def test_is_traced_by_its_symbols_or_by_types_from_a_file(self):
        self.take_types_away()
        with self.subTest("by symbols"):
            self.assertRegex(self.count().stderr, r"carries no types \(BTF: .*--types FILE")
        with self.subTest("again, beside what had to stay"):
            self.assertRegex(self.count().stderr, r"the stub stays in \d+ pages .*does nothing")
        with self.subTest("what needs types"):
            for program in ("fbt::vfs_read:entry { trace(args[1]); }", "BEGIN { trace(curthread->prio); }",
                            "sdt:::sched_switch { exit(0); }"):
                self.assertRegex(self.refusal(program), r"--types FILE takes", program)
        with self.subTest("why"):
            text, tree = why(f"qmp:{self.machine.path}")
            self.assertRegex(text, r"Linux 6\.12")
            self.assertGreater(len(tree["log"]), 0, text)
            self.assertRegex("\n".join(tree["not_known"]), r"carries no types .*--types")
        with self.subTest("lists"):
            done = {command: subprocess.run([ringside.binary(), command, f"qmp:{self.machine.path}"], text=True,
                                            capture_output=True, timeout=ringside.TIMEOUT, check=False)
                    for command in ("dmesg", "ps")}
            self.assertIn("Linux version 6.12", done["dmesg"].stdout)
            self.assertRegex(done["ps"].stderr, r"processes: the types of this kernel are not known .*--types$")
        with self.subTest("another build's"):
            self.assertRegex(self.refusal("BEGIN { exit(0); }", "--types", self.kernel(self.other)),
                             r"another build .* its build id is [0-9a-f]+, and the guest's [0-9a-f]+")
        with self.subTest("by a file"):
            types = ["--types", str(self.kernel(self.image))]
            outcome = self.count(*types)
            self.assertNotRegex(outcome.stderr, "stays|types")
            program = "fbt::vfs_read:entry { trace(args[0]->f_flags); exit(0); }"
            with self.machine.trace(begin(program), types) as running:
                started(running)
                self.assertEqual(self.machine.port.run("workload --reads 1")[0], 0)
                outcome = running.finish()
            self.assertEqual(outcome.status, 0, outcome)
            self.assertIn("vfs_read:entry", outcome.stdout)


if __name__ == "__main__":
    unittest.main()
