#!/usr/bin/env python3
"""Runs clang-tidy over the C++ sources, each of its findings an error: tests/tidy.py [-k PATTERN] [--program]

Every source of the program, its tests, benchmarks and fuzz targets, and their headers; with --program
only the program's. A library is read as one unit, which takes a tenth of the time, and twelve
sources of a test program are.
A unit that was clean once is not looked at again until it changes in more than words of comments, or
a header that it includes does, or .clang-tidy: the cache is ~/.cache/ringside-tidy. RINGSIDE_BUILD
names another build folder. The last line is "N passed, N failed". Does not: format, which is
.clang-format's business.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIDY, CLANG = "clang-tidy-14", "clang++-14"
OF_TESTS = re.compile(r"_test\.cc$|_bench\.cc$|/testing/|^tests/|_for_tests")
# A comment to the end of its line, which says nothing to clang-tidy, with no string before it.
COMMENT = re.compile(rb"^([^\"\n]*?)//(?!.*NOLINT).*$", re.MULTILINE)
WHOLE = 1000  # sources; no library has more
UNITED = ".cpp"  # a source of meson's own, which includes several of ours, all .cc
# Whatever a test copies costs nobody anything, and what it multiplies are small constants, of which
# this release of clang-tidy does not see that they fit.
NOT_IN_TESTS = "-performance-*,-bugprone-implicit-widening-of-multiplication-result"
NOT_IN_FUZZ = "-readability-identifier-naming"  # names of functions are libFuzzer's


def say(text):
    print(f"tidy: {text}", file=sys.stderr, flush=True)


def configured(build):
    """A build folder of clang's own, where what is generated is there."""
    folder = build / "tidy"
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", folder, ROOT, "-Dlarge_units=true", f"-Dunity_size={WHOLE}",
                        "-Dbench=enabled", "-Dfuzz=enabled"], check=True, stdout=sys.stderr,
                       env=dict(os.environ, CC="clang-14", CXX=CLANG))
    subprocess.run(["ninja", "-C", folder, "dif/d/grammar.h", "guest-shim/shim_image.c"], check=True,
                   stdout=sys.stderr)
    return folder


def name_of(path):
    """A path from the root."""
    return path.relative_to(ROOT).as_posix()


@dataclasses.dataclass(frozen=True)
class Unit:
    """The sources of one compilation: one, or several that meson has put into one."""

    path: pathlib.Path
    command: str
    names: tuple  # of the sources, from the root

    @property
    def is_of_tests(self):
        return any(OF_TESTS.search(name) for name in self.names)

    @property
    def checks(self):
        """The additions to the checks of .clang-tidy."""
        checks = ["-bugprone-suspicious-include"] if self.path.suffix == UNITED else []
        if self.is_of_tests:
            checks.append(NOT_IN_TESTS)
        if self.names[0].startswith("tests/fuzz/"):
            checks.append(NOT_IN_FUZZ)
        return ",".join(checks)


def units(folder, pattern, program_only=False):
    """The units to look at, each source once."""
    found = {}
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        path = (folder / entry["file"]).resolve()
        if path.suffix == ".S":
            continue  # assembler
        inside = [path]
        if path.suffix == UNITED:
            inside = [pathlib.Path(included).resolve()
                      for included in re.findall(r"#include\s*<(.*)>", path.read_text())]
        names = tuple(name_of(source) for source in inside
                      if source.is_relative_to(ROOT) and not source.is_relative_to(folder))
        if path.suffix == UNITED and len(names) < len(inside):
            # Generated sources have a style of their own.
            path.write_text("".join(f"#include<{ROOT / name}>\n" for name in names))
        unit = Unit(path, entry["command"], names)
        if any(pattern in name for name in names) and not (program_only and unit.is_of_tests):
            found.setdefault(path, unit)
    return [*found.values()]


def without_words(text):
    """Preprocessed text with empty comments. The lines stay: clang-tidy counts those of a function."""
    return COMMENT.sub(rb"\1//", text)


def key_of(folder, unit):
    """A digest of all that a unit's findings depend on."""
    command = unit.command
    words = shlex.split(command)
    words = words[:words.index("-o")]
    text = subprocess.run([*words, "-E", "-C", "-P", command.rsplit(maxsplit=1)[1]], cwd=folder,
                          capture_output=True, check=False).stdout
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    digest.update(unit.checks.encode())
    digest.update(without_words(text))
    return digest.hexdigest() if text else None


def tidy(folder, cache, unit):
    """The findings of clang-tidy in a unit; empty when there are none."""
    key = key_of(folder, unit)
    if key and (cache / key).exists():
        return ""
    done = subprocess.run([TIDY, "-p", folder, "--quiet", f"--checks={unit.checks}",
                           f"--config-file={ROOT / '.clang-tidy'}", unit.path],
                          cwd=ROOT, text=True, capture_output=True, check=False)
    if done.returncode == 0:
        if key:
            (cache / key).touch()
        return ""
    return done.stdout or done.stderr


def run(build, pattern="", program_only=False, jobs=os.cpu_count()):
    """Counts what is clean and what is not; findings go to stderr."""
    for tool in (TIDY, CLANG):
        if not shutil.which(tool):
            say(f"error: {tool} is missing: tests/setup --ci installs it")
            return 0, 1
    folder = configured(build)
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"),
                         "ringside-tidy")
    cache.mkdir(parents=True, exist_ok=True)
    passed, failed, seen = 0, 0, set()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        work = {pool.submit(tidy, folder, cache, unit): unit
                for unit in units(folder, pattern, program_only)}
        for done in concurrent.futures.as_completed(work):
            number = len(work[done].names)
            passed, failed = (passed, failed + number) if done.result() else (passed + number, failed)
            # A header's finding is said once, and not with every source that includes it.
            for finding in re.split(r"^(?=\S+:\d+:\d+: error)", done.result(), flags=re.MULTILINE):
                if finding.strip() and finding not in seen:
                    seen.add(finding)
                    say(f"{' '.join(work[done].names)}\n{finding.rstrip()}")
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description="Runs clang-tidy over the C++ sources.")
    parser.add_argument("-k", metavar="PATTERN", default="", help="only paths that have this in them")
    parser.add_argument("--program", action="store_true", help="only the program's sources")
    parser.add_argument("-j", metavar="N", type=int, default=os.cpu_count(), help="how many at a time")
    options = parser.parse_args()
    build = pathlib.Path(os.environ.get("RINGSIDE_BUILD", ROOT / "build")).resolve()
    passed, failed = run(build, options.k, options.program, options.j)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
