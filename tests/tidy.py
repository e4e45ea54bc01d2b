#!/usr/bin/env python3
"""Runs clang-tidy over the C++ sources, each of its findings an error: tests/tidy.py [-k PATTERN] [-j N]

Every source of the program, its tests, benchmarks and fuzz targets, and their headers.
What was clean once is not looked at again until it changes, or a header that it includes, or
.clang-tidy: the cache is ~/.cache/ringside-tidy. RINGSIDE_BUILD names another build folder. The last
line is "N passed, N failed". Does not: format, which is .clang-format's business.
"""

import argparse
import concurrent.futures
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
# Whatever a test copies costs nobody anything, and what it multiplies are small constants, of which
# this release of clang-tidy does not see that they fit.
NOT_IN_TESTS = "-performance-*,-bugprone-implicit-widening-of-multiplication-result"


def say(text):
    print(f"tidy: {text}", file=sys.stderr, flush=True)


def configured(build):
    """A build folder of clang's own, where every source has its own unit and what is generated is there."""
    folder = build / "tidy"
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", folder, ROOT, "-Dbench=enabled", "-Dfuzz=enabled"], check=True,
                       stdout=sys.stderr, env=dict(os.environ, CC="clang-14", CXX=CLANG))
    subprocess.run(["ninja", "-C", folder, "dif/d/grammar.h", "guest-shim/shim_image.c"], check=True,
                   stdout=sys.stderr)
    return folder


def sources(folder, pattern):
    """{path from the root: how it is compiled} of what shall be looked at, each once."""
    found = {}
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        path = (folder / entry["file"]).resolve()
        if not path.is_relative_to(ROOT) or path.is_relative_to(folder) or path.suffix != ".cc":
            continue
        name = path.relative_to(ROOT).as_posix()
        if pattern in name:
            found.setdefault(name, entry["command"])
    return found


def checks_of(name):
    """What is added to the checks of .clang-tidy for one source."""
    return NOT_IN_TESTS if OF_TESTS.search(name) else ""


def key_of(folder, name, command):
    """What one source's findings depend on."""
    words = shlex.split(command)
    words = words[:words.index("-o")]
    text = subprocess.run([*words, "-E", "-C", "-P", command.rsplit(maxsplit=1)[1]], cwd=folder,
                          capture_output=True, check=False).stdout
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    digest.update(checks_of(name).encode())
    digest.update(text)
    return digest.hexdigest() if text else None


def tidy(folder, cache, name, command):
    """What clang-tidy finds in one source; empty when that is nothing."""
    key = key_of(folder, name, command)
    if key and (cache / key).exists():
        return ""
    done = subprocess.run([TIDY, "-p", folder, "--quiet", f"--checks={checks_of(name)}", ROOT / name],
                          cwd=ROOT, text=True, capture_output=True, check=False)
    if done.returncode == 0:
        if key:
            (cache / key).touch()
        return ""
    return done.stdout or done.stderr


def run(build, pattern="", jobs=os.cpu_count()):
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
        work = {pool.submit(tidy, folder, cache, name, command): name
                for name, command in sources(folder, pattern).items()}
        for done in concurrent.futures.as_completed(work):
            passed, failed = passed + (not done.result()), failed + bool(done.result())
            # A header's finding is said once, and not with every source that includes it.
            for finding in re.split(r"^(?=\S+:\d+:\d+: error)", done.result(), flags=re.MULTILINE):
                if finding.strip() and finding not in seen:
                    seen.add(finding)
                    say(f"{work[done]}\n{finding.rstrip()}")
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description="Runs clang-tidy over the C++ sources.")
    parser.add_argument("-k", metavar="PATTERN", default="", help="only paths that have this in them")
    parser.add_argument("-j", metavar="N", type=int, default=os.cpu_count(), help="how many at a time")
    options = parser.parse_args()
    build = pathlib.Path(os.environ.get("RINGSIDE_BUILD", ROOT / "build")).resolve()
    passed, failed = run(build, options.k, options.j)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
