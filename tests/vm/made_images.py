"""Images of the tests' own: one of images/build's with more in its initrd.

An initrd may be several archives, one after another; a later file takes the place of an earlier one.
"""

import contextlib
import functools
import pathlib
import subprocess
import sys
import tempfile

from guest import ROOT, images_folder

sys.path.append(str(ROOT / "images"))
from initramfs import Archive  # noqa: E402


@functools.cache
def static_program(source, optimization="-O2"):
    """The bytes of the static program that a C file makes, from this folder on."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program"
        subprocess.run(["cc", optimization, "-Wall", "-Wextra", "-static", "-o", program,
                        pathlib.Path(__file__).parent / source], check=True)
        return program.read_bytes()


@functools.cache
def dynamic_program(source, *options):
    """The bytes of the dynamically linked program that a C or C++ file makes, from this folder on."""
    compiler = "c++" if source.endswith(".cc") else "cc"
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program"
        subprocess.run([compiler, "-O2", "-Wall", "-Wextra", *options, "-o", program,
                        pathlib.Path(__file__).parent / source], check=True)
        return program.read_bytes()


def add_libraries(archive, *names):
    """Puts the compiler's libraries where the guest's loader looks for them."""
    for name in names:
        path = subprocess.run(["cc", f"-print-file-name={name}"], check=True, capture_output=True,
                              text=True).stdout.strip()
        archive.file(f"lib/{name}", pathlib.Path(path).read_bytes(), 0o755)


def initrd_with(image, archive):
    """The bytes of the image's initrd, with what is in the archive."""
    return (images_folder() / image / "initrd").read_bytes() + archive.bytes()


def image_with_programs(image, *names):
    """image_with() of the programs that NAME.c make."""
    archive = Archive()
    for name in names:
        archive.file(f"bin/{name}", static_program(f"{name}.c"), 0o755)
    return image_with(image, archive)


def image_with_another_kernel(image, files=None):
    """image_with() of the image itself, to start by kexec. `files` (path to bytes) are more programs in
    the initrd of the second one."""
    program = static_program("kexec.c")
    second = Archive()
    for path, data in (files or {}).items():
        second.file(path, data, 0o755)
    second.file("bin/kexec", program, 0o755)
    first = Archive()
    first.file("bin/kexec", program, 0o755)
    first.file("kexec/vmlinuz", (images_folder() / image / "vmlinuz").read_bytes())
    first.file("kexec/initrd", initrd_with(image, second))
    return image_with(image, first)


@contextlib.contextmanager
def image_with(image, archive):
    """The environment in which `image` has what is in the archive, too."""
    with tempfile.TemporaryDirectory(prefix="ringside-image-") as folder:
        made = pathlib.Path(folder) / image
        made.mkdir()
        for path in (images_folder().resolve() / image).iterdir():
            if path.name != "initrd":
                (made / path.name).symlink_to(path)
        (made / "initrd").write_bytes(initrd_with(image, archive))
        yield {"RINGSIDE_IMAGES": folder}
