"""Guests that attack while they are traced. ringside lives, ends when it is told to, does not grow,
and writes nowhere but into its stub and its breakpoints.

RINGSIDE_HOSTILE_ROUNDS: rounds of each attack (default 1), each with a guest and a seed of its own;
RINGSIDE_HOSTILE_SEED: the first one's seed. A seed is printed before it is used.
"""

import contextlib
import os
import pathlib
import random
import re
import select
import signal
import sys
import tempfile
import time
import unittest

import ringside
from attacker import PAGE, Hijack, Memory, Scribbler, Stub, fingerprints
from guest import PATIENT
from test_attach_qmp import Machine, begin, memfd, started

ROUNDS = int(os.environ.get("RINGSIDE_HOSTILE_ROUNDS", "1"))
FIRST_SEED = int(os.environ.get("RINGSIDE_HOSTILE_SEED", "1"))
# Long enough for some thousand firings and all that a trace does now and then.
SECONDS = 4
# It goes on with whatever is left of its kernel.
APPEND = f"panic=0 {PATIENT}"
MIB = 256
LOAD = ("(while true; do workload --reads 50 --opens 20 --getppid 50; cat /proc/*/stat; done)"
        " </dev/null >/dev/null 2>&1 &")
# Reads most of what can be read.
PROGRAM = begin(r"""
fbt::vfs_*:entry, fbt::do_filp_open: {
  @a[execname, probefunc, stack(5)] = count(); @u[ustack(5)] = count(); @t = max(vtimestamp);
  @l[cpu, pid, tid, ppid, uid] = quantize(timestamp); self->at = timestamp;
}
fbt::vfs_*:return { @d[probefunc] = max(timestamp - self->at); self->at = 0; }
fbt::do_filp_open:entry { @n[stringof(args[1]->name)] = count(); print(*args[1]); }
syscall::openat:entry { @p[copyinstr(arg1), curpsinfo->pr_psargs, cwd] = count(); }
instr:vmlinux:vfs_read:load-* { @i[probename, arg1] = count(); }
profile-97 { @s[stack(), curthread->comm] = count(); }
fbt::vfs_read:entry / !said / { printf("fires\n"); said = 1; }
tick-1s { trunc(@a, 20); trunc(@u, 20); trunc(@l, 20); trunc(@n, 20); trunc(@i, 20); }
""")
# All of it records: registers, memory, strings and stacks.
RECORDS = begin(r"""
fbt::vfs_*:entry { @a[execname, probefunc, stack(5)] = count(); self->at = timestamp; }
fbt::vfs_*:return { @d[probefunc, arg1] = max(timestamp - self->at); self->at = 0; }
fbt::do_filp_open:entry { @n[stringof(args[1]->name)] = count(); print(*args[1]); }
fbt::vfs_read:entry /args[0]->f_mode & 1/ { @l[args[0]->f_inode->i_ino, pid, ppid] = quantize(timestamp); }
syscall::openat:entry { @p[copyinstr(arg1), arg2] = count(); }
fbt::vfs_read:entry / !said / { printf("fires\n"); said = 1; }
tick-1s { trunc(@a, 20); trunc(@n, 20); trunc(@l, 20); trunc(@p, 20); }
""")
# Sanitizers, our own checks, and the library's.
CRASH = re.compile(r"Sanitizer|runtime error|check failed|CHECK|terminate called|Assertion")
GROWTH = 256 << 10  # KiB


def resident(pid):
    """KiB that a process has had in memory at most."""
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def listen(running, seconds):
    """Takes what a trace prints, for so long or until it ends."""
    over = time.monotonic() + seconds
    while (left := over - time.monotonic()) > 0:
        if select.select([running.process.stdout], [], [], left)[0]:
            if not os.read(running.process.stdout.fileno(), 1 << 20):
                return


class HostileGuest(unittest.TestCase):
    """The checks that all have in common."""

    def rounds(self):
        """A seed for each round, told."""
        for seed in range(FIRST_SEED, FIRST_SEED + ROUNDS):
            print(f"{self.id()}: seed {seed}", file=sys.stderr, flush=True)
            yield seed

    @contextlib.contextmanager
    def guest(self, image="debian-6.12", cpus=2, load=True):
        """A machine, its memory."""
        with Machine(image, cpus, MIB, memfd(MIB), append=APPEND) as machine:
            memory = Memory(machine.pid, machine.port)
            if load:
                self.assertEqual(machine.port.run(LOAD)[0], 0)
            with contextlib.closing(memory):
                yield machine, memory

    def armed(self, running, memory):
        """Waits until probes fire; returns the stub."""
        running.read_until(lambda text: "fires\n" in text)
        return Stub(memory)

    def check_end(self, running):
        """It still runs or has said why not; it ends when told to, with one of its own statuses."""
        with contextlib.suppress(ProcessLookupError):
            running.process.send_signal(signal.SIGINT)
        outcome = running.finish()
        return self.check_outcome(outcome)

    def check_outcome(self, outcome):
        """One of ringside's own statuses, no word of a crash, and words that somebody can read."""
        self.assertIn(outcome.status, (0, 1), outcome.stderr[-3000:])
        self.assertIsNone(CRASH.search(outcome.stderr), outcome.stderr[-3000:])
        self.assertLess(len(outcome.stderr), 1 << 20)
        return outcome

    def attack(self, what, program=PROGRAM, options=()):
        """A trace goes on while the guest's memory is scribbled over."""
        for seed in self.rounds():
            with self.guest() as (machine, memory), machine.trace(program, ["-q", *options]) as running:
                stub = self.armed(running, memory)
                had = resident(running.process.pid)
                with Scribbler(memory, stub, what, seed) as scribbler:
                    listen(running, SECONDS)
                    if running.process.poll() is None:
                        self.assertLess(resident(running.process.pid) - had, GROWTH)
                    self.check_end(running)
                self.assertGreater(scribbler.written, 1000)


class Scribbled(HostileGuest):
    """Garbage in the guest's memory while it is traced."""

    def test_mailboxes(self):
        self.attack("mailboxes")

    def test_rings(self):
        for full in ("wait", "drop"):
            with self.subTest(full):
                self.attack("rings", RECORDS, ["-x", "record=yes", "-x", f"recordfull={full}"])

    def test_the_words_of_the_host(self):
        self.attack("control")

    def test_the_whole_stub(self):
        self.attack("stub")

    def test_page_tables(self):
        self.attack("page_tables")

    def test_the_kernels_data(self):
        self.attack("kernel_data")

    def test_names_and_types(self):
        self.attack("names_and_types")

    def test_everything(self):
        self.attack("everything")


class Found(HostileGuest):
    """Garbage where ringside finds out what the guest is, while it finds out."""

    def test_attaching(self):
        self.find_out("names_and_types", 6, lambda machine: ringside.run(
            "BEGIN { exit(0); } fbt::vfs_read: { } instr::vfs_read: { }", machine=False,
            options=["-q", "--attach", f"qmp:{machine.path}"]))

    def test_why(self):
        self.find_out("kernel_data", 6, lambda machine: ringside.run(
            verb=["why"], machine=False, options=[f"qmp:{machine.path}"]))

    def find_out(self, what, times, run):
        """Several times in one guest, which stands still and is mended in between."""
        for seed in self.rounds():
            with self.guest(load=False) as (machine, memory):
                machine.owner.ask("stop")
                whole = memory.ram[:]
                for time_of_many in range(times):
                    # Few words at first, so that it gets far.
                    with Scribbler(memory, None, what, seed * times + time_of_many,
                                   pause=10.0 ** -time_of_many):
                        self.check_outcome(run(machine))
                    memory.ram[:] = whole


class Unlike(HostileGuest):
    """Kernels that are not as we know Linux: refused in one line, before a byte is written."""

    IDT_OF_CPUS = 0xfffffe0000000000

    def check_refused(self, machine, memory, changes, words):
        """`changes`: {physical address: word}."""
        was = {at: memory.load(at) for at in changes}
        for at, word in changes.items():
            memory.store(at, word)
        before = fingerprints(memory)

        outcome = ringside.run("fbt::vfs_read:entry { }", machine=False,
                               options=["-q", "--attach", f"qmp:{machine.path}"])

        self.assertEqual(outcome.status, 1, outcome)
        self.assertRegex(outcome.stderr, "^ringside: its owner has paused it: tracing waits\n"
                         rf"ringside: could not enable tracing: [^\n]*{words}[^\n]*\n$")
        self.assertEqual(before, fingerprints(memory))
        for at, word in was.items():
            memory.store(at, word)

    def test_each(self):
        for image in ringside.IMAGES:
            with self.subTest(image), self.guest(image, load=False) as (machine, memory):
                machine.owner.ask("stop")
                gate = memory.image("idt_table") + 3 * 16
                low = memory.load(gate)
                page = memory.entry(self.IDT_OF_CPUS)
                for changes, words in (
                        ({gate: low | 3 << 32}, r"on a stack of their own \(IST 3\)"),
                        ({gate: low ^ 0x40}, "breakpoints of the guest lead to 0x"),
                        ({gate: low | 1 << 40}, r"attributes 0x[0-9a-f]+"),
                        ({gate + 8: 0x1234}, "breakpoints of the guest lead to 0x1234"),
                        ({page: memory.load(page) ^ 0x1000}, "have their interrupt table at"),
                        ({page: 0}, "have their interrupt table at")):
                    with self.subTest(words):
                        self.check_refused(machine, memory, changes, words)
                machine.owner.ask("cont")
                self.assertEqual(machine.port.run("workload --reads 10")[0], 0)


class Frozen(HostileGuest):
    """A guest that stands still, so that whoever writes to its memory is one of us."""

    def test_nothing_is_written_outside_the_stub(self):
        for what, program in (("mailboxes", PROGRAM), ("rings", RECORDS)):
            with self.subTest(what):
                self.check_writes(what, program)

    def check_writes(self, what, program):
        for seed in self.rounds():
            with self.guest(load=False) as (machine, memory):
                machine.owner.ask("stop")
                before = fingerprints(memory)
                with machine.trace(program, ["-q"]) as running:
                    stub = self.placed(memory)
                    with Scribbler(memory, stub, what, seed):
                        listen(running, SECONDS)
                        during = fingerprints(memory)
                        outcome = self.check_end(running)
                own = range(stub.at // PAGE, -(-(stub.at + stub.size) // PAGE) + 2)
                changed = {page for page, (old, new) in enumerate(zip(before, during)) if old != new}
                # The probes' own pages, the gate, and the entry that maps the stub.
                self.assertLess(len(changed.difference(own)), 60, outcome)
                self.assertGreater(len(changed.difference(own)), 10, outcome)
                left = [hex(page * PAGE) for page, (old, new)
                        in enumerate(zip(before, fingerprints(memory)))
                        if old != new and page not in own]
                self.assertEqual(left, [], outcome)

    def placed(self, memory):
        """The stub, once probes may fire."""
        deadline = time.monotonic() + ringside.TIMEOUT
        while time.monotonic() < deadline:
            with contextlib.suppress(LookupError):
                if memory.load((stub := Stub(memory)).data):
                    return stub
            time.sleep(0.05)
        self.fail("no stub in time")


class Inside(HostileGuest):
    """Attacks that only the guest can make: its own processors run what they should not."""

    READER = "(while true; do dd if=/dev/null count=1; done) </dev/zero >/dev/null 2>&1 &"

    def test_jumps_into_the_stub(self):
        for seed in self.rounds():
            pick = random.Random(seed)
            with self.guest() as (machine, memory), machine.trace(PROGRAM, ["-q"]) as running:
                stub, hijack = self.armed(running, memory), Hijack(memory)
                self.assertEqual(machine.port.run(self.READER)[0], 0)
                for _ in range(20):
                    start, size = pick.choice(((0, 1024), (0, stub.size),
                                               (stub.slots[0] - stub.at, 2048)))
                    hijack.forward_to(stub.base + start + pick.randrange(size))
                    listen(running, SECONDS / 20)
                self.check_end(running)

    def test_processors_that_never_answer(self):
        """All of them halt for ever with interrupts off, while we trace and before we come."""
        for _ in self.rounds():
            with self.guest() as (machine, memory):
                with machine.trace(PROGRAM, ["-q"]) as running:
                    self.armed(running, memory)
                    Hijack(memory).forward_to(memory.symbols["stop_this_cpu"])
                    machine.port.start(f"{self.READER} {self.READER} {self.READER}")
                    machine.port.send("go")
                    self.wait_for_halt(machine)
                    self.check_end(running)
                with machine.trace(begin("fbt::vfs_*: { @ = count(); }"), ["-q"]) as running:
                    started(running)
                    self.check_end(running)

    def wait_for_halt(self, machine):
        """Until no processor will ever run again."""
        deadline = time.monotonic() + ringside.TIMEOUT
        while time.monotonic() < deadline:
            said = [machine.owner.ask("human-monitor-command", **{
                "command-line": "info registers", "cpu-index": cpu}) for cpu in range(2)]
            # HLT=1, and bit 9 of the flags is off.
            if all("HLT=1" in each and not int(re.search(r"RFL=(\w+)", each)[1], 16) & 0x200
                   for each in said):
                return
            time.sleep(0.2)
        self.fail("the processors go on")


class Shrunk(unittest.TestCase):
    """The file with the guest's memory becomes smaller while we look at it."""

    def test_a_file_that_shrinks(self):
        with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="owners-ram-") as ram:
            file = ["-object", f"memory-backend-file,id=mem,size={MIB}M,mem-path={ram.name},share=on",
                    "-machine", "pc,memory-backend=mem"]
            with Machine("debian-6.12", 2, MIB, file) as machine:
                self.assertEqual(machine.port.run(LOAD)[0], 0)
                with machine.trace(PROGRAM, ["-q"]) as running:
                    running.read_until(lambda text: "fires\n" in text)
                    # It would be the first to die of it.
                    os.kill(machine.pid, signal.SIGSTOP)
                    os.truncate(ram.name, 1 << 20)
                    listen(running, 2)
                    os.kill(machine.pid, signal.SIGCONT)
                    outcome = running.finish()
                self.assertEqual(outcome.status, 1, outcome.stderr[-3000:])
                self.assertRegex(outcome.stderr, r"\nringside: tracing ended: |^ringside: tracing ended: ")


if __name__ == "__main__":
    unittest.main()
