"""The images by themselves: boot, the command port's protocol, the workload's honesty."""

import sys
import unittest

from guest import ATTEMPTS, PATCHED_TEXT, Guest, GuestError


def counts(output):
    """The workload's report as a dictionary."""
    return {name: int(value) for name, value in
            (line.split() for line in output.decode().splitlines())}


class CommandPort(unittest.TestCase):
    """One guest for all; each test leaves it ready for the next."""

    @classmethod
    def setUpClass(cls):
        cls.guest = cls.enterClassContext(Guest("debian-6.1", cpus=1))

    def test_output_bytes_pass_unchanged(self):
        status, output = self.guest.run(r"printf '\001\004\021\r\n\377tail'")

        self.assertEqual((status, output), (0, b"\x01\x04\x11\r\n\xfftail"))

    def test_nothing_runs_before_go(self):
        self.guest.start("echo ran")
        self.guest.send("bogus")
        self.assertEqual(self.guest.answer(), "error unknown request")
        self.assertTrue(self.guest.stays_silent(0.3))

        self.guest.send("go")

        self.assertEqual(self.guest.finish(), (0, b"ran\n"))

    def test_pid_is_the_plain_command_itself(self):
        pid = self.guest.start("readlink /proc/self")
        self.guest.send("go")

        self.assertEqual(self.guest.finish(), (0, f"{pid}\n".encode()))

    def test_status_of_exit_signal_and_missing_program(self):
        self.assertEqual(self.guest.run("exit 7")[0], 7)
        self.assertEqual(self.guest.run("kill -11 $$")[0], 128 + 11)
        self.assertEqual(self.guest.run("no-such-program")[0], 127)

    def test_kill_ends_the_whole_group(self):
        self.guest.start("sleep 1000 & echo up; sleep 1000")
        self.guest.send("go")
        self.guest.send("kill")
        self.assertEqual(self.guest.finish()[0], 128 + 9)

        self.assertEqual(self.guest.run("pidof sleep")[0], 1)

    def test_kill_before_go(self):
        self.guest.start("echo never")
        self.guest.send("kill")

        self.assertEqual(self.guest.finish(), (128 + 9, b""))

    def test_bad_requests_are_answered(self):
        for request, answer in (("run 4", "odd number of hex digits"),
                                ("run zz", "not a hex digit"),
                                ("run ", "empty command"), ("run 6100", "NUL in command"),
                                ("run " + "61" * 16384, "command too long"),
                                ("run " + "61" * 40000, "line too long"),
                                ("go", "no command waits")):
            self.guest.send(request)
            self.assertEqual(self.guest.answer(), f"error {answer}")

    def test_second_command_is_refused_while_one_waits(self):
        self.guest.start("true")
        self.guest.send("run 61")
        self.assertEqual(self.guest.answer(), "error a command is running")
        self.guest.send("go")
        self.assertEqual(self.guest.finish()[0], 0)

    def test_much_output_arrives_whole(self):
        status, output = self.guest.run("seq 1 20000")

        self.assertEqual(status, 0)
        self.assertEqual(output, "".join(f"{n}\n" for n in range(1, 20001)).encode())


class Contents(unittest.TestCase):
    """The contents that an image must have, for each image and with two processors."""

    def check_image(self, image, attempts=ATTEMPTS):
        """Begins again with a guest that QEMU led into an int3 that was gone."""
        try:
            self.check_guest(image)
        except GuestError as error:
            if attempts == 1 or PATCHED_TEXT not in str(error):
                raise
            print(f"started again: the guest died of {PATCHED_TEXT}", file=sys.stderr)
            self.check_image(image, attempts - 1)

    def check_guest(self, image):
        with Guest(image, cpus=2) as guest:
            status, output = guest.run("cat /proc/modules; cat /sys/block/loop0/loop/backing_file;"
                                       " nproc; cat /sys/class/net/lo/operstate")
            self.assertEqual(status, 0)
            self.assertRegex(output, rb"(?s)^loop .*\n/data/disk\n2\n(unknown|up)\n")

            status, output = guest.run(
                "workload --reads 100 --read-sizes 16,512,4096 --writes 7 --opens 5 --getppid 50"
                " --tcp 3 --processes 2 --threads 2")
            self.assertEqual(status, 0, output)
            told = counts(output)
            self.assertEqual(told["read"], 400)
            self.assertEqual(told["write"], 4 * 7 + 1)
            self.assertEqual(told["openat"], 4 * (5 + 2))
            self.assertEqual(told["getppid"], 200)
            self.assertEqual(told["connect"], 12)
            self.assertEqual(told["rounds"], 4)

            status, output = guest.run("workload --reads 8 --file /dev/loop0 --direct")
            self.assertEqual((status, counts(output)["read"]), (0, 8))

    def test_debian_6_1(self):
        self.check_image("debian-6.1")

    def test_debian_6_12(self):
        self.check_image("debian-6.12")


if __name__ == "__main__":
    unittest.main()
