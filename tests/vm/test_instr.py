"""Probes on every instruction of functions: each firing is one pass, and the arguments are true.

Whoever enters an instruction leaves the one before it, or jumps there; so the counts of a function's
instructions, with what its jumps say of themselves, have to agree to the last one.
"""

import collections
import re
import tempfile
import unittest

import ringside
from test_attach_qmp import Machine
from test_storm import TROUBLE

# Of a function: how often each instruction ran, and where its jumps led.
COUNTS = """
instr:vmlinux:%(function)s: /execname == "workload"/
{ @n[probefunc, probename, arg0 - (uint64_t)&`%(function)s] = count(); }
instr:vmlinux:%(function)s:jcc-* /execname == "workload"/
{ @jumps[probefunc, probename, arg2 - (uint64_t)&`%(function)s, arg1] = count(); }
instr:vmlinux:%(function)s:jmp-* /execname == "workload"/
{ @jumps[probefunc, probename, arg1 - (uint64_t)&`%(function)s, 1] = count(); }
fbt:vmlinux:%(function)s:entry, fbt:vmlinux:%(function)s:return /execname == "workload"/
{ @ends[probefunc, probename] = count(); }
"""
# Straight-line code and branches, no static key and no fault that is mended.
FUNCTIONS = ("vfs_read", "rw_verify_area", "ksys_read", "vfs_write", "ksys_write")


class Flow:
    """The counts of one function in a trace."""

    def __init__(self, outcome, function):
        self.count = {}  # by offset
        self.kind = {}
        self.jumps = collections.Counter()  # taken, by (from, to)
        self.not_taken = collections.Counter()
        for words in map(str.split, outcome.stdout.splitlines()):
            if len(words) < 4 or words[0] != function:
                continue
            kind, offset = words[1].split("-")
            offset = int(offset, 16)
            if len(words) == 4:
                assert int(words[2]) == offset, words
                self.count[offset] = int(words[3])
                self.kind[offset] = kind
            elif words[3] == "1":
                self.jumps[offset, int(words[2])] += int(words[4])
            else:
                self.not_taken[offset] += int(words[4])

    def complaints(self, entries):
        """The sums that do not agree, one line each."""
        lines = []
        offsets = sorted(self.count)
        expected = collections.Counter({offsets[0]: entries})
        for (_, to), times in self.jumps.items():
            expected[to] += times
        for here, following in zip(offsets, offsets[1:]):
            if self.kind[here] == "jcc":
                expected[following] += self.not_taken[here]
            elif self.kind[here] not in ("jmp", "ret"):
                expected[following] += self.count[here]
        for offset in offsets:
            if self.count[offset] != expected[offset]:
                lines.append(f"{self.kind[offset]}-{offset:x}: {self.count[offset]} times,"
                             f" but {expected[offset]} lead there")
        return lines


class Instructions:
    """The tests; the classes at the end say on which guest."""

    image = ""
    cpus = 0
    first_push = ""  # of vfs_read

    def trace(self, program, command, *options):
        outcome = ringside.run(program, image=self.image, cpus=self.cpus, command=command,
                               options=options)
        self.assertEqual(outcome.status, 0, outcome)
        return outcome

    def test_what_enters_an_instruction_leaves_another(self):
        outcome = self.trace("".join(COUNTS % {"function": name} for name in FUNCTIONS),
                             "workload --reads 300 --writes 50 --read-sizes 16,512 --opens 20"
                             " --processes 2 --threads 2")

        counts = outcome.counts()
        self.assertGreaterEqual(counts["vfs_read entry"], counts["read"], outcome)
        for function in FUNCTIONS:
            flow = Flow(outcome, function)
            entries = counts[f"{function} entry"]
            self.assertEqual(entries, counts[f"{function} return"], outcome)
            self.assertGreater(len(flow.count), 15, outcome)
            self.assertEqual(flow.complaints(entries), [], (function, outcome))

    def test_probes_of_one_address_fire_in_the_order_of_enabling(self):
        names = ("fbt::vfs_read:entry", "instr:vmlinux:vfs_read:other-0")
        for first, second in (names, names[::-1]):
            with self.subTest(first):
                outcome = self.trace(
                    f'{first} /execname == "workload"/ {{ printf("<1>"); }}'
                    f' {second} /execname == "workload"/ {{ printf("<2>"); }}',
                    "workload --reads 50", "-q")
                order = re.findall(r"<\d>", outcome.stdout)
                self.assertEqual(order, ["<1>", "<2>"] * (len(order) // 2), outcome)
                self.assertGreaterEqual(len(order), 100, outcome)

    def test_arguments_say_what_the_instruction_does(self):
        # The callee's own entry tells where the call leads; the stack pointer where a push stores.
        outcome = self.trace(
            'instr:vmlinux:ksys_read:call-* /execname == "workload"/'
            ' { self->target = arg1; self->back = arg0; }'
            ' fbt::vfs_read:entry /self->target/'
            ' { @[self->target == (uint64_t)&`vfs_read ? "<right>" : "<wrong>"] = count();'
            "   @[caller > self->back && caller <= self->back + 7 ? \"<back>\" : \"<lost>\"]"
            " = count(); }"
            f' instr:vmlinux:vfs_read:{self.first_push} /execname == "workload"/'
            ' { @[arg1 == regs[R_RSP] - 8 ? "<push>" : "<else>"] = count();'
            '   @[arg2 == 8 && arg0 == regs[R_RIP] ? "<size>" : "<other>"] = count(); }',
            "workload --reads 200", "-q")

        counts = outcome.counts()
        calls = counts["<right>"]
        self.assertGreaterEqual(calls, counts["read"], outcome)
        for name in ("<back>", "<push>", "<size>"):
            self.assertEqual(counts[name], calls, outcome)
        for name in ("<wrong>", "<lost>", "<else>", "<other>"):
            self.assertNotIn(name, counts, outcome)


# Counts functions that run in the workload's calls, and those that also run in an idle guest: its
# timer's path. With a probe on each of those instructions a CPU under TCG would do little else.
HOT = """
instr:vmlinux::other-0 { @[pid == 0 ? "<idle>" : execname == "workload" ? "<hot>" : "<else>",
                       probefunc] = count(); }
"""
WORKLOAD = "workload --reads 20 --writes 5 --opens 4 --getppid 10 --processes 2 --threads 2"
EACH = {"read": 20, "getppid": 10}  # by each of the 4 threads
class Storm:
    """Every instruction of the functions that the workload calls most, at once."""

    image = ""
    functions = 80

    def hot_functions(self):
        outcome = ringside.run(HOT, image=self.image, cpus=2, options=("-q",), command=WORKLOAD)
        self.assertEqual(outcome.status, 0, outcome)
        hot, idle = {}, set()
        for words in map(str.split, outcome.stdout.splitlines()):
            if len(words) == 3 and words[0] == "<hot>":
                hot[words[1]] = int(words[2])
            elif words[:1] == ["<idle>"]:
                idle.add(words[1])
        chosen = sorted(hot.keys() - idle, key=hot.get, reverse=True)[:self.functions]
        self.assertGreater(len(chosen), self.functions / 2, outcome)
        return chosen

    def test_nothing_is_lost_or_hurt(self):
        every = self.hot_functions()

        def all_of(provider, name):
            return ",".join(f"{provider}:vmlinux:{function}:{name}" for function in every)

        with tempfile.NamedTemporaryFile("w", suffix=".d") as script:
            script.write(f"{all_of('instr', '')} {{ @all = count(); }}\n"
                         f"{all_of('instr', 'other-0')} {{ @heads = count(); }}\n"
                         f"{all_of('fbt', 'entry')} {{ @entries = count(); }}\n"
                         'END { printa("<all> %@d\\n<heads> %@d\\n<entries> %@d\\n",'
                         " @all, @heads, @entries); }")
            script.flush()
            outcome = ringside.run(image=self.image, cpus=2, options=("-q", "-s", script.name),
                                   command=f"{WORKLOAD}; dmesg", timeout=3 * ringside.TIMEOUT)

        self.assertEqual(outcome.status, 0, outcome)
        counts = outcome.counts()
        for name, each in EACH.items():
            self.assertEqual(counts[name], 4 * each, outcome)
        self.assertIsNone(TROUBLE.search(outcome.stdout), outcome)
        self.assertGreater(counts["<all>"], 5 * counts["<entries>"], outcome)
        # These fire at the same traps, so also where the host was late for some.
        self.assertEqual(counts["<heads>"], counts["<entries>"], outcome)


class StormOn61(Storm, unittest.TestCase):
    image = "debian-6.1"


@ringside.takes_long
class StormOn612(Storm, unittest.TestCase):
    image = "debian-6.12"


class On61(Instructions, unittest.TestCase):
    image, cpus, first_push = "debian-6.1", 2, "store-5"


class On612(Instructions, unittest.TestCase):
    image, cpus, first_push = "debian-6.12", 2, "store-9"  # behind a landing pad


class Refusals(unittest.TestCase):
    """An instruction that cannot be probed is refused in one line."""

    def refusal(self, machine, description):
        outcome = machine.run(f"{description} {{ }}")
        self.assertEqual(outcome.status, 1, outcome)
        self.assertEqual(outcome.stdout, "", outcome)
        said = re.findall(r"^.*probe description (\S+) does not match any probes: (.+)$",
                          outcome.stderr, re.M)
        self.assertEqual([asked for asked, _ in said], [description], outcome)
        return said[0][1]

    def test_say_why(self):
        machine = self.enterContext(Machine())
        for description, why in (
                ("instr:vmlinux:vfs_read:store-6", "it lies inside the instruction store-5"),
                ("instr:vmlinux:vfs_read:load-5", "the instruction there is store-5"),
                ("instr:vmlinux:jiffies:load-0", "jiffies is data"),
                ("instr:vmlinux:vfs_read:entry", "CLASS-OFFSET"),
                ("instr:vmlinux:memset:ret-0", "memset has no ftrace site"),
                ("instr:::", "matches more than 140000 instructions; name a module")):
            with self.subTest(description):
                self.assertIn(why, self.refusal(machine, description))
