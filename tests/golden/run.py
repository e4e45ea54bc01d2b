#!/usr/bin/env python3
"""Runs the golden tests: D scripts with what they must print.

Usage: tests/golden/run.py [-k PATTERN] [-j JOBS] [--state] [--update] [--skipped] [--list]

A test is one file, tests/golden/CATEGORY/NAME.d; README.md beside this file describes its form.
Progress and diffs go to stderr; the last line on stdout is "N passed, N failed", and ", N skipped"
when there are any. `--update` writes what was printed into the EXPECT block of each failing test,
to be reviewed before it is committed. RINGSIDE_BUILD names another build folder; with
DTRACE_OPT_JIT=no in the environment the scripts are interpreted instead of compiled.
"""

import argparse
import concurrent.futures
import dataclasses
import difflib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KEYS = ("NAME", "OPTIONS", "ARGS", "ENV", "EXIT", "TAG", "RUN", "FILE", "STDIN", "TIMEOUT", "SKIP")
NUMBER = r"\s*(?:-?[0-9]+|0x[0-9a-f]+)"


@dataclasses.dataclass
class Golden:
    """One test file, read."""

    path: pathlib.Path
    header: dict  # key to the list of its values
    expect: list  # stdout's lines, in the escapes of show()
    stderr: list  # texts that must appear, in this order

    @property
    def name(self):
        return f"{self.path.parent.name}/{self.path.stem}"

    def first(self, key, default=""):
        """A key's first value."""
        return self.header.get(key, [default])[0]


@dataclasses.dataclass
class Outcome:
    """The outcome of one test: trouble is empty when it passed, skip says why it did not run."""

    test: Golden
    trouble: str = ""
    skip: str = ""
    stdout: str = ""
    seconds: float = 0.0


class Malformed(Exception):
    """A test file that does not have the form."""


def block(text, word):
    """The lines of the comment that opens with `word`, without their stars; None if there is none."""
    found = re.search(rf"^/\* {word}\b[^\n]*\n(.*?)^ ?\*/", text, re.MULTILINE | re.DOTALL)
    if found is None:
        return None
    lines = []
    for line in found.group(1).splitlines():
        if not line.startswith(" *"):
            raise Malformed(f"a line of {word} does not start with ' *': {line!r}")
        lines.append(line[3:])
    return lines


def parse(path):
    """Reads a test file."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r"/\* (NAME\b.*?)\*/", text, re.DOTALL)
    if found is None:
        raise Malformed("no /* NAME comment")
    header = {}
    for line in found.group(1).splitlines():
        line = re.sub(r"^ \* ?", "", line).rstrip()
        pieces = re.split(rf"(?:^|\s\s+)({'|'.join(KEYS)})\b ?", line)
        if pieces[0].strip():
            raise Malformed(f"not a key: {pieces[0]!r}")
        for key, value in zip(pieces[1::2], pieces[2::2]):
            header.setdefault(key, []).append(value.strip())
    if "TAG" in header:
        header.setdefault("EXIT", ["1"])
    return Golden(path, header, block(text, "EXPECT") or [], block(text, "STDERR") or [])


def show(raw):
    """Output as the lines of an EXPECT block, in characters that an editor shows and keeps."""
    if not raw:
        return []
    text = raw.decode("utf-8", "backslashreplace")
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", lambda m: f"\\x{ord(m.group()):02x}", text)
    text = text.replace("*/", r"*\x2f").replace("/*", r"/\x2a")
    lines = text.split("\n")
    last = lines.pop()
    if last:
        lines.append(last + r"\c")
    return [line + "$" if re.search(r"[\s$]$", line) else line for line in lines]


def pattern(line):
    """The regular expression of an expected line; <*> stands for a number."""
    return NUMBER.join(re.escape(piece) for piece in re.split(r"\s*<\*>", line))


def same(expected, actual):
    """Whether a printed line is as expected."""
    return expected == actual or ("<*>" in expected and re.fullmatch(pattern(expected), actual))


def compare(test, stdout):
    """A unified diff of stdout against the expectation, empty if there is none."""
    actual = show(stdout)
    wanted = list(test.expect)
    if len(wanted) == len(actual):
        wanted = [got if same(want, got) else want for want, got in zip(wanted, actual)]
    return "\n".join(difflib.unified_diff(wanted, actual, "expected", "printed", lineterm="", n=30))


def compare_stderr(test, stderr):
    """Complains about a text of STDERR, or an error tag, that did not appear."""
    rest = stderr
    for text in test.stderr:
        found = re.search(pattern(text), rest)
        if found is None:
            return f"stderr lacks {text!r}:\n{stderr}"
        rest = rest[found.end():]
    tag = test.first("TAG")
    if tag and not re.search(rf": \[{tag}\] line [0-9]+: .", stderr):
        return f"stderr lacks [{tag}]:\n{stderr}"
    return ""


def command(test, ringside, script):
    """The command line of a test."""
    if "RUN" in test.header:
        return ["/bin/sh", "-c", "\n".join(test.header["RUN"])]
    options = [word for line in test.header.get("OPTIONS", []) for word in shlex.split(line)]
    words = [word for line in test.header.get("ARGS", []) for word in shlex.split(line)]
    tags = ["-x", "errtags"] if "TAG" in test.header else []
    return [ringside, *tags, *options, "-s", script, *words]


def surroundings(test, ringside, script):
    """The environment of a test: nothing of ours but PATH and DTRACE_OPT_JIT, which changes no output."""
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC",
                   "DTRACE": str(ringside), "SCRIPT": script,
                   **{key: os.environ[key] for key in ("DTRACE_OPT_JIT",) if key in os.environ}}
    for line in test.header.get("ENV", []):
        environment.update(word.split("=", 1) for word in shlex.split(line))
    return environment


def execute(words, folder, environment, stdin, limit):
    """Runs a command; returns status (None: out of time), stdout and stderr."""
    with subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          start_new_session=True) as child:
        try:
            out, err = child.communicate(stdin, timeout=limit)
            return child.returncode, out, err
        except subprocess.TimeoutExpired:
            # A shell's children hold the pipes open, too.
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
            return None, out, err


def run(test, ringside, skip=True):
    """Runs one test in a folder of its own."""
    if skip and "SKIP" in test.header:
        return Outcome(test, skip=test.first("SKIP"))
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="golden.") as folder:
        script = test.path.name
        shutil.copy(test.path, folder)
        for extra in test.header.get("FILE", []):
            source = test.path.parent / extra
            target = pathlib.Path(folder, source.name)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        status, out, err = execute(command(test, ringside, script), folder,
                                   surroundings(test, ringside, script),
                                   test.first("STDIN").encode(),
                                   float(test.first("TIMEOUT", "30")))
    if status is None:
        return Outcome(test, "no end in time", "", out, time.monotonic() - start)
    trouble = [compare(test, out)]
    stderr = err.decode("utf-8", "backslashreplace")
    wanted = int(test.first("EXIT", "0"))
    if status != wanted:
        trouble.append(f"exit status {status}, not {wanted}:\n{stderr}")
    trouble.append(compare_stderr(test, stderr))
    return Outcome(test, "\n".join(filter(None, trouble)), "", out,
                   time.monotonic() - start)


def update(test, stdout):
    """Writes what was printed into the test's EXPECT block."""
    text = test.path.read_text(encoding="utf-8")
    lines = "".join(f" * {line}".rstrip() + "\n" for line in show(stdout))
    fresh = f"/* EXPECT\n{lines} */\n" if lines else ""
    old = re.compile(r"^/\* EXPECT\b[^\n]*\n.*?^ ?\*/\n", re.MULTILINE | re.DOTALL)
    if old.search(text):
        text = old.sub(lambda _: fresh, text, count=1)
    else:
        text = text.rstrip("\n") + "\n" + fresh
    test.path.write_text(text, encoding="utf-8")


def collect(wanted):
    """All tests whose name matches `wanted`, and the complaints about files that are none."""
    tests, bad = [], []
    for path in sorted(HERE.glob("*/*.d")):
        if not re.search(wanted, f"{path.parent.name}/{path.stem}"):
            continue
        try:
            tests.append(parse(path))
        except (Malformed, UnicodeDecodeError) as trouble:
            bad.append(f"golden: {path.parent.name}/{path.stem}: {trouble}")
    return tests, bad


def numbered(tests, outcomes, doing):
    """Each test with its outcome; a terminal shows how many are done."""
    shown = sys.stderr.isatty()
    for number, (test, outcome) in enumerate(zip(tests, outcomes), 1):
        if shown:
            print(f"\r\033[Kgolden: {doing}, {number} of {len(tests)}", end="", file=sys.stderr, flush=True)
        yield test, outcome
    if shown:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def run_all(build, wanted="", jobs=2, rewrite=False, count=None):
    """Runs the tests and says what failed; returns how many passed, failed and were skipped. `count`
    is that list, of zeros, for a caller that wants to know it when Ctrl-C ends this."""
    ringside = pathlib.Path(build).resolve() / "ringside"
    tests, bad = collect(wanted)
    for complaint in bad:
        print(complaint, file=sys.stderr)
    count = [0, 0, 0] if count is None else count
    count[1] = len(bad)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for _, outcome in numbered(tests, pool.map(lambda test: run(test, ringside), tests), "scripts"):
            if outcome.skip:
                count[2] += 1
                print(f"golden: {outcome.test.name} skipped: {outcome.skip}", file=sys.stderr)
            elif outcome.trouble:
                count[1] += 1
                print(f"golden: {outcome.test.name} FAILED ({outcome.seconds:.1f} s)\n"
                      f"{outcome.trouble}\n", file=sys.stderr, flush=True)
                if rewrite:
                    update(outcome.test, outcome.stdout)
            else:
                count[0] += 1
    return count


def save(test, ringside, folder):
    """Compiles a test's script to a file of that folder; None when it is not meant to compile."""
    if {"SKIP", "RUN", "TAG", "STDIN"} & set(test.header):
        return None
    home = pathlib.Path(folder, test.name)
    home.mkdir(parents=True)
    script = test.path.name
    shutil.copy(test.path, home)
    for extra in test.header.get("FILE", []):
        source = test.path.parent / extra
        (shutil.copytree if source.is_dir() else shutil.copy)(source, home / source.name)
    _, *words = command(test, ringside, script)
    status, _, _ = execute([ringside, "compile", "-o", "saved.dof", *words], home,
                           surroundings(test, ringside, script), b"", 60)
    return home / "saved.dof" if status == 0 else None


def check_state(build, wanted="", jobs=2, count=None):
    """Fires what each script compiles to 10,000 times (state_check.cc says what is compared);
    returns how many passed, failed and were skipped, as run_all() does. A script that does not
    compile is not counted."""
    ringside = pathlib.Path(build).resolve() / "ringside"
    checker = pathlib.Path(build).resolve() / "tests/golden/golden_state_check"
    tests, _ = collect(wanted)
    count = [0, 0, 0] if count is None else count
    places = {"same": 0, "differs": 1, "skipped": 2}  # of a verdict in the count
    with tempfile.TemporaryDirectory(prefix="golden.") as folder:

        def check(test):
            saved = save(test, ringside, folder)
            if saved is None:
                return "none", ""
            status, out, _ = execute([checker, saved], folder, None, b"", 300)
            word, _, why = out.decode().rpartition("saved.dof: ")[2].strip().partition(": ")
            return (word, why) if word in places else ("differs", f"ended with status {status}")

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for test, (word, why) in numbered(tests, pool.map(check, tests), "10,000 firings of each"):
                if word == "none":
                    continue
                count[places[word]] += 1
                if word == "differs":
                    print(f"golden: {test.name} FAILED: firing 10,001 is not as a first one with the "
                          f"same variables: {why}", file=sys.stderr, flush=True)
    return count


def try_skipped(build, wanted):
    """Names the tests whose SKIP can go."""
    ringside = pathlib.Path(build).resolve() / "ringside"
    for test in collect(wanted)[0]:
        if "SKIP" in test.header and not run(test, ringside, skip=False).trouble:
            print(test.path.relative_to(ROOT))
    return 0


def main():
    parser = argparse.ArgumentParser(description="Runs the golden tests.")
    parser.add_argument("-k", metavar="PATTERN", default="",
                        help="run only tests whose category/name matches this regular expression")
    parser.add_argument("-j", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--state", action="store_true",
                        help="fire what the scripts compile to 10,000 times, and compare state")
    parser.add_argument("--update", action="store_true",
                        help="write what was printed into the tests that fail, for review")
    parser.add_argument("--skipped", action="store_true",
                        help="run the tests that have a SKIP and name those that pass")
    parser.add_argument("--list", action="store_true", help="count the tests by category")
    options = parser.parse_args()
    if options.list:
        count = {}
        for test in collect(options.k)[0]:
            count[test.path.parent.name] = count.get(test.path.parent.name, 0) + 1
        print("\n".join(f"{category} {n}" for category, n in sorted(count.items())))
        return 0
    build = os.environ.get("RINGSIDE_BUILD", ROOT / "build")
    if options.skipped:
        return try_skipped(build, options.k)
    if options.state:
        passed, failed, skipped = check_state(build, options.k, options.j)
    else:
        passed, failed, skipped = run_all(build, options.k, options.j, options.update)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
