"""Build folders with clang's sanitizers, for run.py --sanitize NAME.

`address` looks for wrong uses of memory, leaks and undefined behaviour in the unit tests and the
golden scripts; `thread` for data races and lock orders in meson's suite `threads`, to which every
test program belongs that shares data between threads. The folder is NAME in the usual build folder.
"""

import ctypes
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

from introspect import introspect, suites_of

ROOT = pathlib.Path(__file__).resolve().parents[1]
# GCC takes twice as long for what they add.
COMPILERS = {"CC": "clang-14", "CXX": "clang++-14"}
# Without optimization: what a sanitizer adds takes the optimizer three times as long as all the tests.
FLAGS = "-g1 -fno-omit-frame-pointer -fno-sanitize-recover=all"
# More and the sanitizers of that time, now and then, find memory where they want their own.
MOST_RANDOM_BITS = 28
ADDR_NO_RANDOMIZE = 0x0040000  # personality(2)


@dataclasses.dataclass(frozen=True)
class Sanitizer:
    """The sanitizer to build in, which of meson's tests run, and whether the golden scripts do."""

    compiled_in: str
    suite: str
    golden: bool

    def selection(self):
        """The options of `meson test`."""
        return ["--no-rebuild", "--timeout-multiplier", "10", "--suite", self.suite]


SANITIZERS = {"address": Sanitizer("address,undefined", "unit", golden=True),
              "thread": Sanitizer("thread", "threads", golden=False)}


def settle_addresses(bits=pathlib.Path("/proc/sys/vm/mmap_rnd_bits")):
    """Where addresses are too random: what this process starts from now on has its memory where it always is."""
    if int(bits.read_text()) > MOST_RANDOM_BITS and ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE) == -1:
        print("sanitizers: personality(2) is forbidden here, so a program may stop as it starts",
              file=sys.stderr, flush=True)


def programs(tests, suite, pattern, folder):
    """The ninja targets of the tests of a suite that have the pattern in their names."""
    paths = [pathlib.Path(test["cmd"][0]) for test in tests
             if suite in suites_of(test) and pattern in test["name"]]
    return [str(path.relative_to(folder)) for path in paths if path.is_relative_to(folder)]


def check_compilers():
    """FileNotFoundError, with the way out, where one is missing."""
    missing = [compiler for compiler in COMPILERS.values() if shutil.which(compiler) is None]
    if missing:
        raise FileNotFoundError(f"{' and '.join(missing)} not found: apt-get install clang-14 libclang-rt-14-dev")


def prepare(name, build, pattern, golden):
    """Configures and builds what the tests need; returns the build folder."""
    check_compilers()
    sanitizer, folder = SANITIZERS[name], build.resolve() / name
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", folder, ROOT, f"-Db_sanitize={sanitizer.compiled_in}",
                        "-Db_lundef=false", "-Dlarge_units=true", "-Ddebug=false",
                        "-Doptimization=0", f"-Dcpp_args={FLAGS}", f"-Dc_args={FLAGS}"],
                       check=True, stdout=sys.stderr, env={**os.environ, **COMPILERS})
    subprocess.run(["ninja", "-C", folder, "build.ninja"], check=True, stdout=sys.stderr)
    targets = programs(introspect(folder, "tests"), sanitizer.suite, pattern or "", folder)
    if golden:
        targets += ["ringside", "tests/golden/golden_state_check"]
    if targets:
        subprocess.run(["ninja", "-C", folder, *targets], check=True, stdout=sys.stderr)
    return folder
