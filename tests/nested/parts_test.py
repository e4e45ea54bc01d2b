#!/usr/bin/env python3
"""The parts of tests/nested, without a machine: the payload, and reading GoogleTest's words."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import nested
from payload import Payload, PayloadError, libraries

REPORT = """<testsuites><testsuite name="S">
 <testcase name="good" classname="S" status="run" result="completed"/>
 <testcase name="bad" classname="S"><failure message="one"/><failure message="two"/></testcase>
 <testcase name="left" classname="S" result="skipped"><skipped message="why"/></testcase>
</testsuite></testsuites>"""


class PayloadParts(unittest.TestCase):
    def test_a_program_comes_with_its_libraries_and_its_loader(self):
        names = [path.name for path in libraries(sys.executable)]

        self.assertIn("libc.so.6", names)
        self.assertIn("ld-linux-x86-64.so.2", names)

    @unittest.skipUnless(shutil.which("busybox"), "no busybox here to list the archive with")
    def test_a_library_of_two_programs_is_there_once(self):
        payload = Payload()
        payload.program("/bin/true", "a/one")
        payload.program("/bin/false", "a/two")
        payload.data("a/text", b"words")
        listing = subprocess.run(["busybox", "cpio", "-t"], input=payload.bytes(),
                                 capture_output=True, check=True).stdout.decode().split()

        self.assertEqual([listing.count(name) for name in ("a/one", "a/two", "a/text")], [1, 1, 1])
        self.assertEqual(listing.count("lib/libc.so.6"), 1)
        self.assertIn("lib64/ld-linux-x86-64.so.2", listing)

    def test_what_is_missing_is_named(self):
        with self.assertRaisesRegex(PayloadError, "/no/such/program is missing: build it"):
            Payload().program("/no/such/program", "x")


class OnceMore(unittest.TestCase):
    def outcome(self, *ends):
        """The steps that run, when they end like this, and the counts of errors and failures."""
        done = []
        steps = iter(ends)

        class Some(nested.TestCase):
            def setUp(self):
                done.append("set-up")

            def test_something(self):
                done.append("test")
                if error := next(steps):
                    raise error

        result = unittest.TestResult()
        Some("test_something").run(result)
        return done, len(result.errors), len(result.failures)

    def test_a_test_begins_anew_once_when_its_machine_was_lost(self):
        lost = nested.Level1Lost("soft lockup")

        self.assertEqual(self.outcome(None), (["set-up", "test"], 0, 0))
        self.assertEqual(self.outcome(lost, None), (["set-up", "test"] * 2, 0, 0))
        self.assertEqual(self.outcome(lost, lost), (["set-up", "test"] * 2, 1, 0))
        self.assertEqual(self.outcome(lost, AssertionError("no")), (["set-up", "test"] * 2, 0, 1))

    def test_what_the_test_itself_finds_is_not_tried_again(self):
        self.assertEqual(self.outcome(AssertionError("no")), (["set-up", "test"], 0, 1))
        self.assertEqual(self.outcome(ValueError("no")), (["set-up", "test"], 1, 0))


class GoogleTest(unittest.TestCase):
    def test_cases_by_name_with_their_words(self):
        self.assertEqual(nested.gtest_outcomes(REPORT), {
            "S.good": ("good", ""), "S.bad": ("bad", "one\ntwo"), "S.left": ("skipped", "why")})

    def test_names_from_a_listing(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "some_test")
            program.write_text("#!/bin/sh\necho 'Running main() from here'\n"
                               "echo 'S.'; echo '  A'; echo '  B/0  # GetParam() = 1'\n")
            os.chmod(program, 0o755)

            self.assertEqual(nested.gtest_names(program), ["S.A", "S.B/0"])


if __name__ == "__main__":
    unittest.main()
