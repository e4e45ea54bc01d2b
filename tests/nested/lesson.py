"""The commands of docs/lesson.md, with what the lesson claims about their output.

Used by test_lesson.py. In the lesson a block

    <!-- expect: REGEX -->
    <!-- never: REGEX -->
    ```console
    $ COMMAND
    > more of it
    output, shortened
    ```

holds one command. Everything that is expected has to be found in what the command prints, a regular
expression per line of comment; what is never there must not. Does not: run anything.
"""

import dataclasses
import re

FENCE = "```"
CLAIM = re.compile(r"<!-- (expect|never): (.*) -->")


class LessonError(Exception):
    """One line that says what in the lesson cannot be tested, and where."""


@dataclasses.dataclass
class Step:
    """One command of the lesson."""

    line: int  # where its block begins
    command: str
    expected: list
    never: list

    def complaints(self, output):
        """A line for each claim that `output` does not bear out."""
        return ([f"not there: {claim}" for claim in self.expected
                 if not re.search(claim, output, re.MULTILINE)]
                + [f"there: {claim}" for claim in self.never
                   if re.search(claim, output, re.MULTILINE)])


def command_of(lines, at):
    """The command at the beginning of a block's lines, its continuations joined by line ends."""
    if not lines or not lines[0].startswith("$ "):
        raise LessonError(f"line {at}: a console block begins with '$ COMMAND'")
    command = [lines[0][2:]]
    for line in lines[1:]:
        if line.startswith("$ "):
            raise LessonError(f"line {at}: one command a block")
        if not line.startswith("> "):
            break
        command.append(line[2:])
    return "\n".join(command)


def steps(text):
    """Every command of the lesson, in its order."""
    found = []
    claims = {"expect": [], "never": []}
    block = None
    for number, line in enumerate(text.splitlines(), 1):
        if block is not None:
            if line != FENCE:
                block.append(line)
                continue
            if not claims["expect"]:
                raise LessonError(f"line {begin}: nothing is expected of this command")
            found.append(Step(begin, command_of(block, begin), claims["expect"], claims["never"]))
            claims, block = {"expect": [], "never": []}, None
        elif line == FENCE + "console":
            begin, block = number, []
        elif claim := CLAIM.fullmatch(line):
            claims[claim[1]].append(claim[2])
        elif any(claims.values()):
            raise LessonError(f"line {number}: a claim stands right before its block")
    if block is not None:
        raise LessonError(f"line {begin}: this block has no end")
    return found
