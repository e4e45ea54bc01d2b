"""`ringside why` looks at kernel code that takes locks and does not let them go.

No kernel has such code on purpose, so sethostname() becomes it: the guest's own mutex_lock() and its
like are called, on locks of the kernel that nothing else in an idle guest asks for.
"""

import struct
import unittest

import guest
import ringside
from patient import Patient, hung, is_first

MUTEX, OTHER_MUTEX, SEMAPHORE = "swapon_mutex", "kprobe_mutex", "key_types_sem"
PAUSE = ("msleep", 500)  # so that each task has its first lock before it asks for the second
FOR_EVER = ("msleep", 1_000_000_000)


def calls(each):
    """Code that calls functions, pairs of an address and an argument, and then itself for ever."""
    code = b""
    for function, argument in each:
        code += b"\x48\xbf" + struct.pack("<Q", argument)  # movabs rdi
        code += b"\x48\xb8" + struct.pack("<Q", function) + b"\xff\xd0"  # movabs rax; call rax
    return code + b"\xeb\xfe"


def by_length(of_one, of_more):
    """A system call's code: one part runs where its second argument is 1, the other otherwise.

    The argument is pt_regs::si (arch/x86/include/asm/ptrace.h).
    """
    return b"\x50\x80\x7f\x68\x01\x75" + bytes([len(of_one)]) + of_one + of_more


class TwoTasks:
    """Two tasks and their locks."""

    def hang(self, patient, of_one, of_more):
        """`hostname 1` calls the functions of of_one, `hostname 22` those of of_more.

        Calls are pairs of a function's name and its argument, a number or the name of a lock.
        """
        names = sorted({word for pair in (*of_one, *of_more) for word in pair if isinstance(word, str)})
        known = dict(zip(names, patient.addresses(*names)))
        codes = [calls((known[function], known.get(argument, argument)) for function, argument in each)
                 for each in (of_one, of_more)]
        patient.lose_a_cpu(by_length(*codes).hex().encode())
        patient.hang("hostname 1 & hostname 22 & wait")

    images = ringside.IMAGES

    def check(self, of_one, of_more, check):
        """Checks the report of a guest of each image once both tasks have waited for long."""
        for image in self.images:
            with self.subTest(image), Patient(image) as patient:
                self.hang(patient, of_one, of_more)
                text, tree = patient.why_once(hung(2))
                check(text, tree, [task for task in tree["waiting"] if task["name"] == "hostname"])

    def check_cycle(self, text, tree, tasks):
        self.assertTrue(is_first("lock-cycle")(tree), text)
        self.assertEqual(len(tasks), 2, text)
        for task, other in (tasks, tasks[::-1]):
            self.assertEqual(task["waits"]["lock"]["owner"], other["pid"], text)
            self.assertIn(f"(pid {task['pid']}) waits for", tree["causes"][0]["text"], text)
        return {task["waits"]["lock"]["kind"] for task in tasks}

    def test_each_holds_the_mutex_that_the_other_wants(self):
        def check(text, tree, tasks):
            self.assertEqual(self.check_cycle(text, tree, tasks), {"mutex"}, text)

        self.check([("mutex_lock", MUTEX), PAUSE, ("mutex_lock", OTHER_MUTEX)],
                   [("mutex_lock", OTHER_MUTEX), PAUSE, ("mutex_lock", MUTEX)], check)

    def test_a_mutex_and_a_rw_semaphore_make_a_cycle_too(self):
        def check(text, tree, tasks):
            self.assertEqual(self.check_cycle(text, tree, tasks), {"mutex", "rw_semaphore"}, text)

        self.check([("mutex_lock", MUTEX), PAUSE, ("down_read", SEMAPHORE)],
                   [("down_write", SEMAPHORE), PAUSE, ("mutex_lock", MUTEX)], check)


class Locks(TwoTasks, unittest.TestCase):
    """On ordinary kernels, whose locks are of three kinds."""

    def test_a_rw_semaphore_that_a_sleeping_reader_holds(self):
        def check(text, tree, tasks):
            waiter, = [task for task in tasks if task["waits"].get("lock")]
            holder, = [task for task in tasks if task is not waiter]
            lock = waiter["waits"]["lock"]
            self.assertEqual((lock["kind"], lock["held_by_readers"]), ("rw_semaphore", True), text)
            self.assertEqual(lock["owner"], holder["pid"], text)
            said, = [cause["text"] for cause in tree["causes"] if cause["kind"] == "lock-holder"]
            self.assertIn(f"hostname (pid {holder['pid']}) holds", said, text)

        self.check([("down_read", SEMAPHORE), FOR_EVER], [PAUSE, ("down_write", SEMAPHORE)], check)


@ringside.takes_long
class RealTimeLocks(guest.OfSuite, TwoTasks, unittest.TestCase):
    """On Debian's real-time kernel, where all of them are rt_mutexes."""

    suite = "trixie-rt"

    @property
    def images(self):
        return [self.image]

    def test_the_readers_of_a_rw_semaphore_have_no_names(self):
        def check(text, _tree, tasks):
            waiter, = [task for task in tasks if task["waits"].get("lock")]
            lock = waiter["waits"]["lock"]
            self.assertEqual((lock["kind"], lock["held_by_readers"]), ("rw_semaphore", True), text)
            self.assertNotIn("owner", lock, text)

        self.check([("down_read", SEMAPHORE), FOR_EVER], [PAUSE, ("down_write", SEMAPHORE)], check)


if __name__ == "__main__":
    unittest.main()
