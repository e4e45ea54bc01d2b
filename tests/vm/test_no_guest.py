"""Commands that need no guest, and commands that are refused before one would start."""

import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import ringside


class WithoutMachine(unittest.TestCase):
    def run_plain(self, program, *options):
        """Runs without any machine option."""
        return ringside.run(program, machine=False, options=options, timeout=60)

    def test_exit_status_is_the_programs(self):
        outcome = self.run_plain("BEGIN { trace(1); exit(3); }")

        self.assertEqual(outcome.status, 3, outcome)
        self.assertRegex(outcome.stdout, r":BEGIN +1\n")

    def test_ticks_and_end(self):
        start = time.monotonic()
        outcome = self.run_plain('tick-10hz { n++; } tick-10hz /n == 5/ { exit(0); }'
                                 ' END { printf("ticks %d\\n", n); }', "-q")

        self.assertEqual((outcome.status, outcome.stdout), (0, "ticks 5\n\n"), outcome)
        self.assertLess(time.monotonic() - start, 10)

    def test_bad_d_has_a_place_and_a_caret(self):
        outcome = self.run_plain("BEGIN { trace(1 +); }")

        self.assertEqual(outcome.status, 1, outcome)
        self.assertRegex(outcome.stderr, r"syntax error near .*\n.*\n *\^ column 18")
        self.assertIn("^", outcome.stderr)

    def test_output_that_cannot_be_written_is_told(self):
        for words in (["-l"], ["-n", "BEGIN { trace(1); exit(0); }"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([ringside.binary(), *words], stdout=full, timeout=60,
                                      stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn("cannot write output: No space left on device", done.stderr)

    def test_a_closed_stdout_is_told(self):
        for words in ("-l", "-n 'BEGIN { trace(1); exit(0); }'"):
            done = subprocess.run(["sh", "-c", f'"$0" {words} >&-', ringside.binary()], timeout=60,
                                  stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn("cannot write output: Bad file descriptor", done.stderr)

    def test_an_unfinished_clause_is_shown_as_it_was_written(self):
        outcome = self.run_plain("BEGIN { trace(1)")

        self.assertEqual(outcome.status, 1, outcome)
        self.assertEqual(outcome.stderr.splitlines()[1], "BEGIN { trace(1)")

    def test_a_guests_probe_without_a_guest(self):
        outcome = self.run_plain("fbt::vfs_read:entry")

        self.assertEqual(outcome.status, 1, outcome)
        self.assertIn("there is no guest; name one with --attach, --image", outcome.stderr)

    def test_a_list_goes_on_behind_what_does_not_match(self):
        outcome = self.run_plain("nosuch:::,dtrace:::BEGIN", "-l")

        self.assertEqual(outcome.status, 1, outcome)
        self.assertIn("failed to match nosuch:::", outcome.stderr)
        self.assertRegex(outcome.stdout, r"dtrace .* BEGIN\n")

    def test_wrong_usage(self):
        self.assertEqual(ringside.run(None, machine=False, options=["--no-such-option"]).status, 2)


class Refusals(unittest.TestCase):
    """One line each, with the way out, and soon."""

    def check_refused(self, words, *options):
        start = time.monotonic()
        outcome = ringside.run("BEGIN { exit(0); }", machine=False, options=options, timeout=60)

        self.assertEqual(outcome.status, 1, outcome)
        self.assertRegex(outcome.stderr, words)
        self.assertLessEqual(len(outcome.stderr.splitlines()), 2, outcome)
        self.assertLess(time.monotonic() - start, 30)

    def test_an_unknown_image(self):
        self.check_refused(r"no-such-image.*images/build", "--image", "no-such-image")

    def test_a_missing_kernel_file(self):
        self.check_refused(r"/no/such/vmlinuz", "--kernel", "/no/such/vmlinuz")

    def test_a_file_that_is_no_kernel(self):
        with tempfile.NamedTemporaryFile(suffix=".kernel") as file:
            file.write(b"not a kernel" * 1000)
            file.flush()
            self.check_refused(f"{file.name}: no kernel: it takes a bzImage", "--kernel", file.name)

    def test_a_missing_qemu(self):
        self.check_refused(r"/no/such/qemu", "--image", "debian-6.1", "--qemu", "/no/such/qemu")

    def test_a_qemu_that_ends_without_a_word(self):
        self.check_refused(r"is --qemu a QEMU", "--image", "debian-6.1", "--qemu", "/bin/true")

    def test_messages_do_not_blame_the_kernel_for_other_things(self):
        outcome = ringside.run("BEGIN", machine=False, timeout=60,
                               options=["--image", "debian-6.1", "--memory", "500g"])

        self.assertEqual(outcome.status, 1, outcome)
        self.assertNotIn("vmlinuz", outcome.stderr)

    def test_a_qemu_that_dies(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "qemu")
            script.write_text("#!/bin/sh\necho 'cannot start today' >&2\nexit 1\n")
            os.chmod(script, 0o755)
            self.check_refused(r"cannot start today", "--image", "debian-6.1", "--qemu", script)


if __name__ == "__main__":
    unittest.main()
