"""lockstat against a known number of locks that are taken, let go and waited for, on every guest."""

import re
import unittest

import guest
import ringside
from made_images import image_with_programs


class Locks:
    """The tests; the classes at the end say on which guest."""

    image = ""
    cpus = 0
    lacks = ()  # the probes that this kernel has no place for
    blocks = 32  # the flags of a wait for a mutex (LCB_F_* of include/trace/events/lock.h)

    def trace(self, program, command="locks"):
        """Runs it beside locks.c or contention.c."""
        environment = self.enterContext(image_with_programs(self.image, command))
        outcome = ringside.run(program, image=self.image, cpus=self.cpus, options=["-q"],
                               command=f"{command}; echo status $?", environment=environment)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertIn("status 0", outcome.stdout.splitlines(), outcome)
        return outcome

    def unless_lacking(self, name):
        """Skips a test of a probe that this kernel lacks."""
        if name in self.lacks:
            self.skipTest(f"this kernel has no {name}")

    PHASES = ('BEGIN { phase = 0; }'
              ' syscall::getppid:entry /execname == "locks"/ { phase++; }')

    def test_locks_that_are_taken_and_let_go(self):
        outcome = self.trace(
            self.PHASES +
            # Of a pipe: readers and writers take its mutex, whose address is that of both ends.
            " lockstat:::adaptive-acquire, lockstat:::adaptive-release"
            ' /execname == "locks" && phase == 1 && arg0 == (uintptr_t)&((struct pipe_inode_info *)'
            "curthread->files->fdt->fd[5]->private_data)->mutex/ { @[probename, 0] = count();"
            " this->owned = mutex_owned(args[0]) && mutex_owner(args[0]) == curthread; }"
            " lockstat:::adaptive-release"
            ' /execname == "locks" && phase == 1 && arg0 == (uintptr_t)&((struct pipe_inode_info *)'
            "curthread->files->fdt->fd[5]->private_data)->mutex && this->owned/"
            ' { @["owned", 0] = count(); }'
            " lockstat:::spin-acquire"
            + ("" if "spin-release" in self.lacks else ", lockstat:::spin-release") +
            ' /execname == "locks" && phase == 2 &&'
            " arg0 == (uintptr_t)&curthread->sighand->siglock/ { @[probename, 0] = count(); }"
            " lockstat:::rw-acquire, lockstat:::rw-release"
            ' /execname == "locks" && phase == 3 && args[0] == &curthread->mm->mmap_lock/'
            " { @[probename, arg1 == RW_READER] = count(); }"
            " lockstat:::rw-release"
            ' /execname == "locks" && phase == 3 && args[0] == &curthread->mm->mmap_lock &&'
            " (arg1 == RW_READER ? rw_read_held(args[0]) : rw_write_held(args[0]))/"
            ' { @["held", arg1 == RW_READER] = count(); }'
            ' END { printa("%s %d %@d\\n", @); }')

        counts = outcome.counts()
        expected = {"adaptive-acquire 0": 40, "adaptive-release 0": 40, "owned 0": 40,
                    "held 0": 24, "held 1": 15,
                    "spin-acquire 0": 30, "spin-release 0": 30,
                    "rw-acquire 0": 24, "rw-release 0": 24,
                    "rw-acquire 1": 15, "rw-release 1": 15}
        expected = {name: count for name, count in expected.items() if name.split()[0] not in self.lacks}
        self.assertEqual({name: counts.get(name) for name in expected}, expected, outcome)

    def test_locks_that_are_waited_for(self):
        self.unless_lacking("adaptive-block")
        outcome = self.trace(
            self.PHASES +
            " lockstat:::adaptive-block, lockstat:::adaptive-acquire"
            + ("" if "adaptive-spin" in self.lacks else ", lockstat:::adaptive-spin") +
            ' /execname == "locks" && phase == 4 &&'
            " arg0 == (uintptr_t)&curthread->files->fdt->fd[3]->f_pos_lock/"
            ' { @[probename] = count(); printf("%s %d\\n", probename, pid); }'
            " lockstat:::adaptive-block"
            ' /execname == "locks" && phase == 4 &&'
            " args[0] == &curthread->files->fdt->fd[3]->f_pos_lock/ { @least = min(arg1); }"
            f" sdt:lock::contention_begin /arg1 == {self.blocks}/ {{ self->blocks = arg0; }}"
            " lockstat:::adaptive-block { @sums[\"blocks\"] = count(); }"
            " lockstat:::adaptive-block /arg0 == self->blocks/ { @sums[\"true\"] = count(); }"
            ' END { printa("<%s> %@d\\n", @); printa("<%s> %@d\\n", @sums);'
            ' printa("<least> %@d\\n", @least); }')

        counts = outcome.counts()
        self.assertEqual(counts["<adaptive-block>"], 5, outcome)
        self.assertEqual(counts["<adaptive-acquire>"], counts["reads"], outcome)
        self.assertNotIn("<adaptive-spin>", counts, outcome)
        self.assertEqual(counts["<blocks>"], counts["<true>"], outcome)
        # At least as long as the program let it wait, which was 20 ms.
        self.assertGreater(counts["<least>"], 10_000_000, outcome)
        # Each process that waited was told of it before it had the lock.
        told = re.findall(r"^(adaptive-\w+) (\d+)$", outcome.stdout, re.MULTILINE)
        for number, (name, process) in enumerate(told):
            if name == "adaptive-block":
                self.assertIn(("adaptive-acquire", process), told[number + 1:], outcome)

    def test_who_waits_is_who_the_kernel_says_does(self):
        self.unless_lacking("rw-block")
        outcome = self.trace(
            'sdt:lock::contention_begin /execname == "contention" && (arg1 == 2 || arg1 == 4)/'
            ' { @["begins"] = count(); }'
            ' lockstat:::rw-block /execname == "contention"/ { @["waits"] = count(); }'
            ' lockstat:::rw-block /execname == "contention" && (arg1 == 0 || arg2 > 1 || arg4 < 0)/'
            ' { @["strange"] = count(); }'
            ' fbt::native_queued_spin_lock_slowpath:entry /execname == "contention"/'
            ' { @["spins"] = count(); }'
            ' lockstat:::spin-spin /execname == "contention"/ { @["spun"] = count(); }'
            ' END { printa("<%s> %@d\\n", @); }', "contention")

        counts = outcome.counts()
        self.assertGreater(counts["<begins>"], 0, outcome)
        self.assertEqual(counts["<waits>"], counts["<begins>"], outcome)
        self.assertNotIn("<strange>", counts, outcome)
        if self.cpus > 1:
            self.assertLessEqual(abs(counts.get("<spins>", 0) - counts.get("<spun>", 0)), 1, outcome)

    def test_what_linux_has_not_is_refused_by_name(self):
        outcome = ringside.run("lockstat:::thread-spin", image=self.image, cpus=self.cpus)

        self.assertNotEqual(outcome.status, 0, outcome)
        self.assertIn("Linux has no locks of threads; nearest: lockstat:::spin-spin",
                      outcome.stderr, outcome)


globals().update(ringside.on_each(Locks, ringside.GUESTS))


@ringside.takes_long
class Older(guest.OfSuite, Locks, unittest.TestCase):
    """On the oldest kernel that is promised, Debian's 5.10."""

    suite = "bullseye"
    lacks = ("spin-release", "adaptive-block", "adaptive-spin", "rw-block")

    def test_what_it_lacks_is_refused_with_its_reason(self):
        for name, why in (("spin-release", "has no function _raw_spin_unlock"),
                          ("adaptive-block", "has no static tracepoint contention_begin"),
                          ("adaptive-spin", "has no static tracepoint contention_begin"),
                          ("rw-block", "has no static tracepoint contention_begin")):
            with self.subTest(name):
                outcome = ringside.run(f"lockstat:::{name} {{ }}", image=self.image)
                self.assertEqual(outcome.status, 1, outcome)
                self.assertIn(why, outcome.stderr, outcome)


@ringside.takes_long
class RealTime(guest.OfSuite, Locks, unittest.TestCase):
    """On Debian's real-time kernel, where a mutex, a semaphore and a spinlock_t are rt_mutexes."""

    suite = "trixie-rt"
    lacks = ("spin-acquire", "spin-release", "adaptive-spin", "rw-block")
    blocks = 8

    def test_what_it_lacks_is_refused_with_its_reason(self):
        for name, why in (("adaptive-spin", "a real-time kernel does not tell who spins"),
                          ("rw-block", "count is not a member of struct rw_semaphore")):
            with self.subTest(name):
                outcome = ringside.run(f"lockstat:::{name} {{ }}", image=self.image)
                self.assertEqual(outcome.status, 1, outcome)
                self.assertIn(why, outcome.stderr, outcome)


@ringside.takes_long
class Newest(guest.OfSuite, Locks, unittest.TestCase):
    """On Debian unstable's, which has locks elsewhere every few months."""

    suite = "sid"
    # rwsem_down_read_slowpath of 7.2 has another jump label right behind that of contention_begin, so that
    # readers are missing.
    lacks = ("rw-block",)

    def test_readers_that_are_not_seen_are_told(self):
        outcome = ringside.run("lockstat:::rw-block { } tick-10ms { exit(0); }", image=self.image)

        self.assertEqual(outcome.status, 0, outcome)
        self.assertRegex(outcome.stderr, "rw-block does not see all that happens: no probe can stand at .*"
                                         "jump label")


if __name__ == "__main__":
    unittest.main()
