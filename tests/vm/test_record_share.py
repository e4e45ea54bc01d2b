"""How many of the clauses in examples/ and in the documents record.

Each program is enabled on an attached guest of each kernel, and ringside says why places wait. A clause that
is named there is taken out, and the program is enabled again, until no place waits by itself. All clauses of
probes in the guest that are left record.
"""

import dataclasses
import re
import tempfile
import unittest

import ringside
from test_attach_ends import patient
from test_examples import EXAMPLES, FOLDER

LEAST = 0.95
# Fire on the host, or by its clock.
HOSTS = re.compile(r"\s*(?:dtrace:|BEGIN|END|ERROR|profile|tick|vm:|:::?(?:BEGIN|END))")
QUIET = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|^#[^\n]*', re.DOTALL | re.MULTILINE)
# Clauses share places with others that wait, so these tell nothing of one clause. Of 45,659 functions
# six are places of ringside's own.
OF_ALL = ("most of the program's places have to wait", "a probe stands where ringside waits for the guest itself")


@dataclasses.dataclass
class Part:
    """A clause or a declaration of a program."""

    text: str
    lines: range

    def on_the_host(self):
        """The same clause, which fires on the host; nothing if it cannot. Both have as many lines."""
        code = blanked(self.text)
        begin = re.match(r"\s*", code).end()
        probes = re.match(r"[^{/]*", code[begin:]).end() + begin
        lines = "\n" * self.text.count("\n", begin, probes)
        yield dataclasses.replace(self, text=f"{self.text[:begin]}END{lines}{self.text[probes:]}")
        yield dataclasses.replace(self, text="\n" * self.text.count("\n"))

    @property
    def fires_in_guest(self):
        """Whether it is a clause of a probe in the guest."""
        code = blanked(self.text)
        return "{" in code and ":" in code.split("{")[0] and not HOSTS.match(code) \
            and not re.match(r"\s*(?:inline|typedef|struct|union|enum|translator|provider)\b", code)


def blanked(text):
    """The text with nothing in comments, strings and directives."""
    return QUIET.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def parts_of(program):
    """Its clauses and declarations, which together are all of it."""
    parts, begin, depth = [], 0, 0
    code = blanked(program)
    for at, letter in enumerate(code):
        depth += (letter in "{(") - (letter in "})")
        ends = depth == 0 and (letter == "}" and not re.match(r"\s*;", code[at + 1:]) or letter == ";")
        if ends or at == len(code) - 1:
            first = program.count("\n", 0, begin) + 1
            parts.append(Part(program[begin:at + 1], range(first, program.count("\n", 0, at) + 2)))
            begin = at + 1
    return parts


def programs_of_page(text):
    """The D programs in a page: those of commands, and blocks that are nothing else."""
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        commands = re.findall(r"-n\s+'([^']*)'", block)
        yield from commands
        if commands or block.startswith("$") or not re.match(r"(?:/\*.*?\*/\s*)?[\w*]*:[\w*]*:", block):
            continue
        lines = [re.sub(r"\s+#.*", "", line) for line in block.splitlines()]
        if all(re.fullmatch(r"[\w*-]*(?::.*)?\s*\{.*\}", line) for line in lines):
            yield from lines
        else:
            yield block


class Share(unittest.TestCase):
    """Of all clauses, on one guest of each kernel."""

    def why_waiting(self, machine, parts, arguments):
        """The reasons for which places of the program wait; None of a program that does not run."""
        with tempfile.NamedTemporaryFile("w", suffix=".d") as script:
            script.write("".join(part.text for part in parts) + "\nBEGIN { exit(0); }\n")
            script.flush()
            outcome = machine.run(None, ["-q", "-v", "-Z", "-s", script.name, *arguments])
        if outcome.status != 0:
            self.error = outcome.stderr
            return None
        found = re.findall(r"\d+ places? not recorded: (.*)$", outcome.stderr, re.MULTILINE)
        return [why for why in found if not why.startswith(OF_ALL)]

    def without(self, machine, parts, part, arguments):
        """The program without that clause, and why places of it wait."""
        why = None
        for other in part.on_the_host():
            left = [other if one is part else one for one in parts]
            if (why := self.why_waiting(machine, left, arguments)) is not None:
                break
        return left, why

    def without_culprit(self, machine, parts, arguments, why):
        """The program without the clause for which a place waits, and why others wait."""
        clauses = [part for part in parts if part.fires_in_guest]
        if line := re.match(r"line (\d+)", why):
            clauses = [part for part in clauses if int(line[1]) in part.lines][-1:]
        for part in clauses:
            left, reasons = self.without(machine, parts, part, arguments)
            if reasons is None or why not in reasons:
                break
        return left, reasons

    def waiting(self, machine, parts, arguments):
        """How many clauses of the program there are, and why some of them wait; None if it does not run."""
        count, reasons = sum(part.fires_in_guest for part in parts), []
        why = self.why_waiting(machine, parts, arguments)
        if why is None:
            return None
        while why and len(reasons) < count:
            reasons.append(why[0])
            parts, why = self.without_culprit(machine, parts, arguments, why[0])
        return count, reasons

    def check(self, machine, programs):
        """Prints the share of those clauses that record, and why others do not."""
        clauses = waiting = 0
        for name, program, arguments in programs:
            parts = parts_of(program)
            if not any(part.fires_in_guest for part in parts):
                continue
            found = self.waiting(machine, parts, arguments)
            if found is None:
                print(f"  {name} does not run: {self.error}")
                continue
            clauses, waiting = clauses + found[0], waiting + len(found[1])
            for why in found[1]:
                print(f"  {name}: {why}", flush=True)
        print(f"{clauses - waiting} of {clauses} clauses record", flush=True)
        return clauses, waiting

    def check_image(self, image):
        """All scripts, then the pages."""
        scripts = [(name, (FOLDER / f"{name}.d").read_text(), settings[0])
                   for name, settings in sorted(EXAMPLES.items())]
        pages = [(page.name, program.replace("$target", "1"), [])
                 for page in sorted([*(ringside.ROOT / "docs").glob("*.md"), ringside.ROOT / "README.md"])
                 for program in programs_of_page(page.read_text())]
        found = []
        with patient(image) as machine:
            for what, programs in (("examples", scripts), ("documents", pages)):
                print(f"{what} on {image}:")
                found.append(self.check(machine, programs))
        clauses, waiting = map(sum, zip(*found))
        share = (clauses - waiting) / clauses
        print(f"{share:.1%} of all clauses record")
        self.assertGreaterEqual(share, LEAST)

    @ringside.takes_long
    def test_debian_6_1(self):
        self.check_image("debian-6.1")

    def test_debian_6_12(self):
        self.check_image("debian-6.12")


if __name__ == "__main__":
    unittest.main()
