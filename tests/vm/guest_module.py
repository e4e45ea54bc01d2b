"""Kernel modules of the tests' own, built for an image's kernel.

The headers of exactly that kernel come from Debian through a private apt (images/private_apt.py), once
for each build folder; nothing is installed. The compiler is Debian 12's, which has built these kernels.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from guest import ROOT, images_folder

sys.path.append(str(ROOT / "images"))
from private_apt import PrivateApt  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("RINGSIDE_BUILD", ROOT / "build"))


def fetch_headers(release, folder):
    """Unpacks what a module is built with, as if `folder` were /."""
    apt = PrivateApt.of_kernel(release, folder / "apt")
    headers = f"linux-headers-{release}"
    common = apt.dependency(headers, r"linux-headers-[^ ,]*-common")
    for package in (headers, common, apt.dependency(headers, r"linux-kbuild-[^ ,]*")):
        subprocess.run(["dpkg-deb", "-x", apt.download(package), folder], check=True)


def headers_of(release):
    """The folder to build a module for a kernel in."""
    folder = BUILD.resolve() / "headers" / release
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        work = folder.with_suffix(".part")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        fetch_headers(release, work)
        makefile = work / f"usr/src/linux-headers-{release}/Makefile"
        makefile.write_text(makefile.read_text().replace("/usr/src/", f"{folder}/usr/src/"))
        work.rename(folder)
    return folder / f"usr/src/linux-headers-{release}"


def module(image, source):
    """The bytes of the module that a C file of this folder makes for the image's kernel."""
    headers = headers_of((images_folder() / image / "release").read_text().strip())
    name = pathlib.Path(source).stem
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(HERE / source, folder)
        (pathlib.Path(folder) / "Makefile").write_text(f"obj-m := {name}.o\n")
        # Types of the module would need pahole, and the kernel's own vmlinux.
        words = ["make", "-C", headers, f"M={folder}", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"]
        done = subprocess.run(words, text=True, capture_output=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{source} makes no module of {image}: {done.stderr[-2000:]}")
        built = pathlib.Path(folder) / f"{name}.ko"
        subprocess.run(["strip", "--strip-debug", built], check=True)
        return built.read_bytes()
