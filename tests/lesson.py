"""The commands of a lesson, with what it claims about their output.

Used by the tests of docs/lesson.md (nested/test_lesson.py) and of docs/labs/ (vm/test_labs.py). In such a
page a block

    <!-- expect: REGEX -->
    <!-- never: REGEX -->
    <!-- expect in FILE: REGEX -->
    ```console
    $ COMMAND
    > more of it
    output, shortened
    ```

holds one command. Everything that is expected has to be found in what the command prints, or in the file
that it writes, a regular expression per line of comment; what is never there must not. Does not: run
anything.
"""

import dataclasses
import pathlib
import re

FENCE = "```"
CLAIM = re.compile(r"<!-- (expect|never)(?: in (\S+))?: (.*) -->")


class LessonError(Exception):
    """One line that says what in the lesson cannot be tested, and where."""


@dataclasses.dataclass
class Claim:
    """A regular expression for what a command prints, or for a file that it writes."""

    wanted: bool
    file: str | None
    pattern: str

    def complaint(self, output, folder):
        """A line that says how `output`, or the file in `folder`, does not bear it out, or None."""
        text, where = output, ""
        if self.file:
            path = pathlib.Path(folder, self.file)
            text, where = path.read_text(errors="replace") if path.exists() else "", f" in {self.file}"
        if bool(re.search(self.pattern, text, re.MULTILINE)) == self.wanted:
            return None
        return f"{'not there' if self.wanted else 'there'}{where}: {self.pattern}"


@dataclasses.dataclass
class Step:
    """One command of a lesson."""

    line: int  # where its block begins
    command: str
    claims: list

    def complaints(self, output, folder="."):
        """A line for each claim that is not borne out by `output` and by what was written to `folder`."""
        return [said for claim in self.claims if (said := claim.complaint(output, folder))]


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
    claims = []
    block = None
    for number, line in enumerate(text.splitlines(), 1):
        if block is not None:
            if line != FENCE:
                block.append(line)
                continue
            if not any(claim.wanted for claim in claims):
                raise LessonError(f"line {begin}: nothing is expected of this command")
            found.append(Step(begin, command_of(block, begin), claims))
            claims, block = [], None
        elif line == FENCE + "console":
            begin, block = number, []
        elif claim := CLAIM.fullmatch(line):
            claims.append(Claim(claim[1] == "expect", claim[2], claim[3]))
        elif claims:
            raise LessonError(f"line {number}: a claim stands right before its block")
    if block is not None:
        raise LessonError(f"line {begin}: this block has no end")
    return found
