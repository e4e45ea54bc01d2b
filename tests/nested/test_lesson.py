"""docs/lesson.md: every command of it runs as it stands there, and prints what it says."""

import unittest

import nested
import lesson  # which nested has made visible

STEPS = lesson.steps((nested.ROOT / "docs/lesson.md").read_text())
# The lesson is about a race: a host that is busy elsewhere may run the two CPUs in turn.
TRIES = 3


class Lesson(nested.TestCase):
    """One test a command."""


def one_step(step):
    def test(self):
        for _ in range(TRIES):
            outcome = self.run_in_level1(f"cd /ringside && PATH=/ringside:$PATH && {step.command}")
            complaints = step.complaints(outcome.stdout + outcome.stderr)
            if not complaints:
                return
        self.fail("\n".join([f"docs/lesson.md:{step.line}", *complaints, str(outcome)]))
    return test


for number, each in enumerate(STEPS, 1):
    setattr(Lesson, f"test_{number:02}_line_{each.line}", one_step(each))


if __name__ == "__main__":
    unittest.main()
