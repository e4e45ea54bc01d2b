"""Host files for a guest, as a cpio archive that is put after the guest's own initrd.

Used by nested.py. Programs come with the shared libraries that they need and without what only a
debugger reads. Does not: know which files a test needs.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "images"))

from initramfs import Archive  # noqa: E402


class PayloadError(Exception):
    """One line that says which file is missing and what to do."""


def libraries(program):
    """The host's files of a program's shared libraries and of its loader."""
    done = subprocess.run(["ldd", program], text=True, capture_output=True)
    if "not a dynamic executable" in done.stdout + done.stderr:
        return []
    if done.returncode != 0 or "not found" in done.stdout:
        raise PayloadError(f"ldd cannot say what {program} needs: {done.stdout}{done.stderr}")
    return [pathlib.Path(path) for path in
            re.findall(r"(/\S+) \(0x", done.stdout)]


def stripped(program):
    """A program's bytes without debug information."""
    with tempfile.NamedTemporaryFile() as small:
        subprocess.run(["strip", "--strip-debug", "-o", small.name, program], check=True)
        return pathlib.Path(small.name).read_bytes()


class Payload:
    """Collects files; `bytes()` is the archive. Names are absolute paths in the guest."""

    def __init__(self):
        self._archive = Archive()
        self._libraries = set()

    def program(self, source, name):
        """Adds a program of the host and every library that it needs."""
        if not pathlib.Path(source).is_file():
            raise PayloadError(f"{source} is missing: build it, or run tests/setup")
        self._archive.file(name, stripped(source), 0o755)
        for library in libraries(source):
            # The loader has to be where programs name it; it looks for the others in /lib.
            place = str(library) if library.name.startswith("ld-linux") else f"lib/{library.name}"
            if place not in self._libraries:
                self._libraries.add(place)
                self._archive.file(place, library.read_bytes(), 0o755)

    def file(self, source, name):
        """Adds one file as it is."""
        if not pathlib.Path(source).is_file():
            raise PayloadError(f"{source} is missing: run tests/setup")
        self._archive.file(name, pathlib.Path(source).read_bytes())

    def data(self, name, data):
        """Adds a file with these bytes."""
        self._archive.file(name, data)

    def bytes(self):
        """The whole archive; ends the collecting."""
        return self._archive.bytes()
