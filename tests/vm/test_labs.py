"""docs/labs/: every command of the labs and of their answers runs as it stands there, and prints what the page says."""

import pathlib
import re
import sys
import tempfile
import unittest

import ringside

sys.path.append(str(ringside.ROOT / "tests"))
import lesson  # pylint: disable=wrong-import-position

FOLDER = ringside.ROOT / "docs/labs"
# A host that is busy may let a guest's timer come so late that TCP takes a packet for lost.
TRIES = 2
WRITTEN_FOR = "debian-6.12"
# RINGSIDE_QUICK leaves out the other kernel.
KERNELS = [WRITTEN_FOR] if ringside.QUICK else [WRITTEN_FOR, "debian-6.1"]


def one_step(page, step):
    def test(self):
        command = step.command.replace(f"--image {WRITTEN_FOR}", f"--image {self.image}")
        for _ in range(TRIES):
            with tempfile.TemporaryDirectory() as folder:
                outcome = ringside.run(shell=command, folder=folder)
                complaints = step.complaints(outcome.stdout + outcome.stderr, folder)
            if (outcome.status, complaints) == (0, []):
                return
        self.fail("\n".join([f"{page}:{step.line}", *complaints, command, str(outcome)]))
    return test


def lab(page, image):
    """The class for all commands of a page, with one kernel."""
    name = f"{page.stem}_{re.sub(r'[^0-9a-z]', '_', image)}"
    tests = {f"test_{number:02}_line_{step.line}": one_step(page.name, step)
             for number, step in enumerate(lesson.steps(page.read_text()), 1)}
    return name, type(name, (unittest.TestCase,), {"image": image, "__module__": __name__, **tests})


globals().update(lab(page, image) for page in sorted(pathlib.Path(FOLDER).glob("*.md")) for image in KERNELS)


if __name__ == "__main__":
    unittest.main()
