#!/usr/bin/env python3
"""How the commands of a lesson are read, and how its claims are judged."""

import pathlib
import tempfile
import unittest

import lesson


class LessonParts(unittest.TestCase):
    BLOCK = "<!-- expect: ^b -->\n<!-- never: z -->\n```console\n$ a 'x\n> y'\nb 1\n```\n"

    def test_a_command_with_its_claims(self):
        step, = lesson.steps("words\n\n" + self.BLOCK)

        self.assertEqual((step.line, step.command), (5, "a 'x\ny'"))
        self.assertEqual(step.complaints("a\nb 2"), [])
        self.assertEqual(step.complaints("z"), ["not there: ^b", "there: z"])

    def test_a_claim_about_a_file(self):
        step, = lesson.steps("<!-- expect in out.svg: ^b -->\n" + self.BLOCK)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(step.complaints("b 1", folder), ["not there in out.svg: ^b"])

            pathlib.Path(folder, "out.svg").write_text("a\nb\n")
            self.assertEqual(step.complaints("b 1", folder), [])

    def test_a_command_that_nothing_checks_is_refused(self):
        for text in ("```console\n$ a\n```\n", "<!-- expect: x -->\nwords\n" + self.BLOCK,
                     self.BLOCK.replace("b 1", "$ b"), self.BLOCK.replace("$ a", "a"),
                     self.BLOCK[:-4]):
            with self.assertRaises(lesson.LessonError, msg=text):
                lesson.steps(text)


if __name__ == "__main__":
    unittest.main()
