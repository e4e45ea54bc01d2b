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
WRITTEN_FOR = "debian-6.12"
# RINGSIDE_QUICK leaves out the other kernel.
KERNELS = [WRITTEN_FOR] if ringside.QUICK else [WRITTEN_FOR, "debian-6.1"]


def one_step(page, step):
    def test(self):
        with tempfile.TemporaryDirectory() as folder:
            command = step.command.replace(f"--image {WRITTEN_FOR}", f"--image {self.image}")
            outcome = ringside.run(shell=command, folder=folder)
            complaints = step.complaints(outcome.stdout + outcome.stderr, folder)
        self.assertEqual((outcome.status, complaints), (0, []), f"{page}:{step.line}\n{command}\n{outcome}")
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
