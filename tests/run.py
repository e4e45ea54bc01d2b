#!/usr/bin/env python3
"""Runs suites and counts: tests/run.py [--all] [--suite NAME] [-k PATTERN] [--sanitize NAME] [--qemu PATH]

Progress goes to stderr; the last line on stdout is "N passed, N failed" and ", N skipped" when
there are any. The exit status is 0 only when something ran and nothing failed; 130 after Ctrl-C, which
lets the test that runs clean up, and prints what has passed so far.

Without options it runs all suites, but of those that boot guests the core alone (core.py): 20 minutes on
two processors. --all runs everything, which takes two to three hours there.

Suites: `unit` is everything that meson knows and that needs no guest (GoogleTest cases are counted
one by one), `golden` the scripts of tests/golden/ with what they must print, `live` meson's
programs that boot a guest, `vm` the unittest classes of tests/vm/, which boot guests, as many
classes at a time as half the processors, `nested` those of tests/nested/, which share one machine
with KVM. The last two run at the same time where there are processors for it.

With --sanitize NAME: the suites that sanitizers.py lists for it, from a build folder of their own,
which is made and kept up to date. With --ci: everything but what takes long (RINGSIDE_QUICK=1 in the
environment: vm/ringside.py), clang-tidy (tidy.py) over the program, Debian's packages (packages.py), and
what the address sanitizer watches, on few processors the unit tests alone, and those only so; with
--nightly everything, clang-tidy over every source and every sanitizer. A test that fails in these two runs once more, a few at most
(retries.py). With --minutes, which --ci sets, classes that boot guests and have not begun by then are
skipped, and said to be.
"""

import argparse
import ast
import concurrent.futures.process
import dataclasses
import functools
import importlib.util
import itertools
import json
import math
import multiprocessing
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

import core
import sanitizers
from core import has_processors
from retries import Retries

HERE = pathlib.Path(__file__).resolve().parent
SUITES = ("unit", "golden", "live", "vm", "nested")
# On few processors: what needs no guest comes before what would have to share processors with guests.
ORDER_ON_FEW = ("unit", "golden", "address", "thread", "tidy", "live", "nested", "vm", "packages")
ROOT = HERE.parent
# Half, since a guest and the tracer beside it keep more than one processor busy.
VM_PROCESSES = max(1, (os.cpu_count() or 1) // 2)
CI_MINUTES = 50  # of the 90 that they give
CORE_MINUTES = 23  # on few processors, of 30 in all: the build before them takes six
# A loaded machine is ten times slower; a test that hangs is ended all the same.
UNIT_SELECTION = ("--no-suite", "live", "--timeout-multiplier", "10")
STYLE_SELECTION = ("--no-suite", "unit", *UNIT_SELECTION)  # all but the unit tests
RETRIES = 4  # unless tests are selected by hand; of well over 500 that boot guests
CLASSES = []  # of tests; processes that are forked from this one have them, too


INTERRUPTED = 130  # the exit status, as a shell has it for SIGINT


def say(text):
    print(text, file=sys.stderr, flush=True)


class Interrupted(Exception):
    """Ctrl-C has ended a suite; `count` is what it had counted."""

    def __init__(self, count):
        super().__init__(str(count))
        self.count = count


@dataclasses.dataclass
class Count:
    """The outcomes of some tests."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other):
        """Adds another suite's."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def read_count(text):
    """The Count whose text is the last line; one failure where that line says none."""
    lines = text.splitlines()
    words = re.fullmatch(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?", lines[-1] if lines else "")
    return Count(*(int(word or 0) for word in words.groups())) if words else Count(failed=1)


def count_gtest(report):
    """Counts the cases in a GoogleTest XML report."""
    count = Count()
    for case in report.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            count.failed += 1
        elif case.get("result") == "skipped" or case.get("status") == "notrun":
            count.skipped += 1
        else:
            count.passed += 1
    return count


def count_meson_test(entry, reports):
    """Counts one line of meson's test log; `reports` is the folder with GoogleTest's."""
    count = Count()
    path = reports / f"{pathlib.Path(entry['command'][0]).name}.xml"
    if path.exists():
        try:
            count = count_gtest(xml.etree.ElementTree.parse(path))
        except xml.etree.ElementTree.ParseError:
            count = Count()
    good = entry["result"] in ("OK", "EXPECTEDFAIL", "SKIP")
    if not good and count.failed == 0:
        # A crash, a time-out, or a sanitizer's word at the end: no case is to blame.
        count.failed = 1
    elif good and count == Count():
        count = Count(skipped=1) if entry["result"] == "SKIP" else Count(passed=1)
    return count


def meson_tests(build, pattern, selection):
    """The names of meson's tests with the pattern in them, of the suites that are selected."""
    listing = subprocess.run(["meson", "test", "-C", build, "--list", *selection], text=True,
                             check=True, capture_output=True).stdout.splitlines()
    return [line.rpartition(" / ")[2] for line in listing if pattern in line]


def run_meson(build, pattern, selection, retries=Retries(), cases=None):
    """Runs meson's tests; `selection` is meson's own options that say which, and how, and `cases`
    GoogleTest's filter of their cases, if not the environment's."""
    names = meson_tests(build, pattern, selection) if pattern else []
    if pattern and not names:
        return Count()
    total = Count()
    try:
        for name, count in run_meson_tests(build, names, selection, cases):
            total.add(retries(name, count, functools.partial(run_meson_again, build, name, selection, cases)))
    except Interrupted as error:
        total.add(error.count)
        raise Interrupted(total) from None
    return total


def run_meson_again(build, name, selection, cases):
    """The count of one of meson's tests."""
    return next(iter(run_meson_tests(build, [name], selection, cases)))[1]


def run_meson_tests(build, names, selection, cases):
    """Runs those of meson's tests, all if there are no names; returns pairs of a name and its Count."""
    reports = build.resolve() / "test-reports"
    shutil.rmtree(reports, ignore_errors=True)
    log = build / "meson-logs/testlog.json"
    log.unlink(missing_ok=True)
    meson = subprocess.Popen(["meson", "test", "-C", build, "--print-errorlogs", *selection, *names],
                             stdout=sys.stderr, env=dict(os.environ, GTEST_OUTPUT=f"xml:{reports}/",
                                                         **({"GTEST_FILTER": cases} if cases else {})))

    def counts(but=()):
        entries = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [(entry["name"].rpartition(" / ")[2], count_meson_test(entry, reports)) for entry in entries
                if entry["result"] not in but]

    try:
        meson.wait()
    except KeyboardInterrupt:
        meson.terminate()  # for meson, Ctrl-C ends one test, and this all
        meson.wait()
        total = Count()
        for _, count in counts(but=("INTERRUPT",)):
            total.add(count)
        raise Interrupted(total) from None
    if not log.exists():
        say("run: meson ran no tests: see above")
        return [("meson", Count(failed=1))]
    return counts()


class VmResult(unittest.TestResult):
    """Says each test's name and outcome as it happens; a test fails once, however often."""

    def __init__(self, suite="vm"):
        super().__init__()
        self._suite = suite
        self.bad = set()
        self.test = None  # the one that runs
        self._start = 0.0

    def startTest(self, test):
        super().startTest(test)
        self.test = test
        self._start = time.monotonic()
        say(f"{self._suite}: {test.id()} ...")

    def stopTest(self, test):
        super().stopTest(test)
        if isinstance(sys.exc_info()[1], KeyboardInterrupt):
            return  # run_class() says it
        outcome = "FAILED" if test.id() in self.bad else "done"
        say(f"{self._suite}: {test.id()} {outcome} ({time.monotonic() - self._start:.1f} s)")

    def _failed(self, test, error):
        self.bad.add(test.id())
        say(self._exc_info_to_string(error, test))

    def addError(self, test, err):
        super().addError(test, err)
        self._failed(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._failed(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            say(f"{self._suite}: {subtest.id()}")
            self._failed(test, err)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.bad.add(test.id())

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        say(f"{self._suite}: {test.id()} skipped: {reason}")

    def count(self):
        """Also counts what went wrong outside of a test, as in setUpClass."""
        skipped = len(self.skipped)
        outside = sum(1 for name in self.bad if name.startswith(("setUp", "tearDown")))
        inside = len(self.bad) - outside
        return Count(max(self.testsRun - inside - skipped, 0), len(self.bad), skipped)


def classes_of(suite):
    """The tests of a suite by class: a guest that a class shares is booted once."""
    classes = {}
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            for name, tests in classes_of(test).items():
                classes.setdefault(name, []).extend(tests)
        else:
            # A module that could not be loaded is a test whose class all such modules share.
            name = f"{type(test).__module__}.{type(test).__qualname__}"
            classes.setdefault(name, []).append(test)
    return classes


def clean_up(test):
    """Ends the guests and processes of a test that was interrupted: unittest itself does not."""
    group = type(test)
    test.doCleanups()
    group.tearDownClass()
    group.doClassCleanups()


def run_class(suite, tests, until):
    """Runs the tests of one class, or skips them when it is later than `until`."""
    if time.monotonic() > until:
        say(f"{suite}: {type(tests[0]).__module__}.{type(tests[0]).__qualname__} skipped: no time is left")
        return Count(skipped=len(tests))
    result = VmResult(suite)
    try:
        unittest.TestSuite(tests).run(result)
    except KeyboardInterrupt:
        if result.test:
            say(f"{suite}: {result.test.id()} interrupted: it cleans up")
            clean_up(result.test)
            result.testsRun -= 1  # this one has no outcome
        raise Interrupted(result.count()) from None
    return result.count()


def run_forked(suite, number, until):
    """Runs the class of that number, in a process that was forked from the one with the list."""
    say(f"{suite}: class {number + 1} of {len(CLASSES)}")
    return run_class(suite, CLASSES[number], until)


def run_classes(suite, numbers, processes, until):
    """Runs the classes of those numbers, so many at a time; yields the counts."""
    if processes == 1:
        yield from (run_forked(suite, number, until) for number in numbers)
        return
    with concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("fork")) as pool:
        yield from pool.map(run_forked, *zip(*((suite, number, until) for number in numbers)))


def selected(classes, lists):
    """A table of classes with those of their tests whose names begin with a word of the lists, in the
    order of the words, and after what could not be loaded; all where there are no lists. A test that
    two lists name is of the first one."""
    if not lists:
        return classes
    chosen, seen = {}, set()
    for number, words in enumerate((("unittest.",), *lists)):
        for word in words:
            for name, tests in classes.items():
                wanted = [test for test in tests if test.id().startswith(words) and test.id() not in seen]
                if any(test.id().startswith(word) for test in wanted):
                    chosen.setdefault((number, name), wanted)
        seen.update(test.id() for tests in chosen.values() for test in tests)
    return {f"{name}, more" if any((before, name) in chosen for before in range(number)) else name: tests
            for (number, name), tests in chosen.items()}


def run_vm(folder, pattern, processes=1, retries=Retries(), until=math.inf, lists=()):
    """Runs the tests of a folder, or those that lists name, so many classes at a time, of which each
    begins before `until` or is skipped."""
    loader = unittest.TestLoader()
    if pattern:
        loader.testNamePatterns = [f"*{pattern}*"]
    folder = pathlib.Path(folder)
    classes = selected(classes_of(loader.discover(str(folder), "test_*.py", top_level_dir=str(folder))),
                       lists)
    CLASSES[:] = classes.values()
    numbers = range(len(CLASSES))
    total = Count()
    try:
        counts = run_classes(folder.name, numbers, processes, until)
        for number, name, count in zip(numbers, classes, counts):
            # Whatever the time: a failure that is not looked at again is one.
            total.add(retries(name, count,
                              lambda: next(run_classes(folder.name, [number], processes, math.inf))))
    except (Interrupted, KeyboardInterrupt) as error:
        total.add(getattr(error, "count", Count()))
        raise Interrupted(total) from None
    except concurrent.futures.process.BrokenProcessPool as error:
        say(f"run: {error}")
        total.add(Count(failed=1))
    return total


def run_golden(build, pattern):
    """Runs the golden tests, and what they compile to 10,000 times."""
    spec = importlib.util.spec_from_file_location("golden_run", HERE / "golden/run.py")
    golden = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = golden
    spec.loader.exec_module(golden)
    total = Count()
    for part in (golden.run_all, golden.check_state):
        count = [0, 0, 0]
        try:
            part(build, re.escape(pattern or ""), count=count)
        except KeyboardInterrupt:
            total.add(Count(*count))
            raise Interrupted(total) from None
        total.add(Count(*count))
    return total


def start(script, pattern, *options, nice=0):
    """Starts one of our scripts in a process of its own; returns what waits for its end and counts."""
    # A suite of which the pattern is in no name fails nothing, but ends with a status.
    process = subprocess.Popen(["nice", "-n", str(nice), sys.executable, "-B", HERE / script,
                                *options, *(("-k", pattern) if pattern else ())],
                               stdout=subprocess.PIPE, text=True)

    def wait():
        try:
            return read_count(process.communicate()[0])
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)  # a terminal has sent it one, too
            raise Interrupted(read_count(process.communicate()[0])) from None
    return wait


def run_suites(suites, names):
    """Runs the named suites of a table; returns what came of all of them. Ctrl-C ends it as Interrupted."""
    total = Count()
    for number, name in enumerate(names):
        say(f"run: suite {name}, {number + 1} of {len(names)}")
        try:
            count = suites[name]()
        except (Interrupted, KeyboardInterrupt) as error:
            total.add(getattr(error, "count", Count()))
            raise Interrupted(total) from None
        say(f"{name}: {count}")
        total.add(count)
    return total


def run_sanitized(name, build, wanted, pattern, retries=Retries()):
    """Runs what a sanitizer watches, or of that the suites that are wanted."""
    sanitizer = sanitizers.SANITIZERS[name]
    names = [suite for suite in ("unit", "golden")[:1 + sanitizer.golden]
             if suite in (wanted or (suite,))]
    try:
        folder = sanitizers.prepare(name, build, pattern, "golden" in names)
    except FileNotFoundError as error:
        say(f"run: {error}")
        return Count(failed=1)
    except subprocess.CalledProcessError as error:
        say(f"run: {error}: see above")
        return Count(failed=1)
    sanitizers.settle_addresses()
    return run_suites({"unit": lambda: run_meson(folder, pattern, sanitizer.selection(), retries),
                       "golden": lambda: run_golden(folder, pattern)}, names)


def names_in_ci(names, nightly):
    """The names of all that --ci or --nightly runs where suites of these names are wanted, in this order."""
    names = [*names, "tidy", *(sanitizers.SANITIZERS if nightly else ("address",)), "packages"]
    if has_processors():
        return names
    if not nightly:
        say(f"run: on fewer than {core.ENOUGH_PROCESSORS} processors the unit tests run as `address` alone")
    return sorted(names, key=ORDER_ON_FEW.index)


def parse_options():
    parser = argparse.ArgumentParser(
        description="Runs the tests and counts them; of those that boot guests the core (core.py).")
    parser.add_argument("--all", action="store_true", help="run every test, not the core alone")
    parser.add_argument("--suite", choices=SUITES,
                        action="append", help="run only this suite")
    parser.add_argument("-k", metavar="PATTERN", help="run only tests whose name has this in it")
    parser.add_argument("--sanitize", choices=tuple(sanitizers.SANITIZERS), metavar="NAME",
                        help="build with a sanitizer, address or thread, and run what it watches")
    parser.add_argument("--ci", action="store_true",
                        help="also clang-tidy over the program, and the address sanitizer; less of what "
                        "takes long")
    parser.add_argument("--nightly", action="store_true",
                        help="also clang-tidy over every source, and all sanitizers")
    parser.add_argument("--core", action="store_true",
                        help="of the suites live, vm and nested run only what core.py names")
    parser.add_argument("--retries", metavar="N", type=int, default=0,
                        help="let so many tests that fail run once more, after all others")
    parser.add_argument("--minutes", metavar="N", type=float, default=math.inf,
                        help="begin no class that boots guests later than so many minutes after the start")
    parser.add_argument("--qemu", metavar="PATH",
                        help="the vm suite's QEMU, as tests/vm/qemu10 prints it")
    parser.add_argument("--list", action="store_true",
                        help="say what the files of the suites live, vm and nested test, and run nothing")
    options = parser.parse_args()
    selects = options.all or options.suite or options.k or options.sanitize or options.ci or options.nightly
    options.core |= not selects
    return options


def first_words(path):
    """The first sentence of a test file's first comment."""
    text = path.read_text()
    if path.suffix == ".py":
        comment = ast.get_docstring(ast.parse(text)) or ""
    else:
        comment = "\n".join(line.removeprefix("//").strip()
                            for line in itertools.takewhile(lambda line: line.startswith("//"), text.splitlines()))
    return re.split(r"(?<=\.)\s", " ".join(comment.split()))[0]


def list_files():
    """Prints each file of tests that boot guests, with what it tests."""
    for pattern in ("live/*_test.cc", "vm/test_*.py", "nested/test_*.py"):
        for path in sorted(HERE.glob(pattern)):
            print(f"{path.relative_to(HERE)}: {first_words(path)}")


def main():
    begin = time.monotonic()
    options = parse_options()
    if options.list:
        list_files()
        return 0
    if options.qemu:
        os.environ["RINGSIDE_QEMU"] = options.qemu
    if options.ci:
        options.core |= not has_processors()
        options.minutes = min(options.minutes, CI_MINUTES if has_processors() else CORE_MINUTES)
    if options.ci or options.core:
        os.environ["RINGSIDE_QUICK"] = "1"
    retries = Retries(options.retries or (RETRIES if options.ci or options.nightly or options.core else 0))
    build = pathlib.Path(os.environ.get("RINGSIDE_BUILD", ROOT / "build"))
    until = begin + 60 * options.minutes

    def start_tidy():
        # Beside guests it takes the processors that they leave idle, and no other.
        return start("tidy.py", options.k, *(() if options.nightly else ("--program",)), nice=19)

    def start_nested():
        left = (until - time.monotonic()) / 60
        return start("run.py", options.k, "--suite", "nested", "--retries", str(retries.most),
                     "--minutes", f"{left:.2f}", *(("--core",) if options.core else ()))

    def vm():
        if has_processors():
            suites.update({name: start_it() for name, start_it in beside.items() if name in names})
        return run_vm(HERE / "vm", options.k, VM_PROCESSES, retries, until, core.vm_lists(options))

    beside = {"nested": start_nested, "tidy": start_tidy}  # the guests of vm, where there are processors
    few = options.ci and not has_processors()
    unit = STYLE_SELECTION if few else UNIT_SELECTION
    suites = {"unit": lambda: run_meson(build, options.k, unit, retries),
              "golden": lambda: run_golden(build, options.k),
              "live": lambda: run_meson(build, options.k, ("--suite", "live"), retries,
                                        core.LIVE if options.core else None),
              "vm": vm,
              "nested": lambda: start_nested()(),
              "tidy": lambda: start_tidy()(),
              "packages": lambda: start("packages.py", options.k)()}
    if options.suite == ["nested"]:
        suites["nested"] = lambda: run_vm(HERE / "nested", options.k, 1, retries, until,
                                          (core.NESTED,) if options.core else ())
    names = [name for name in SUITES if name in (options.suite or SUITES)]
    if options.ci or options.nightly:
        names = names_in_ci(names, options.nightly)
        for name in sanitizers.SANITIZERS:
            suites[name] = lambda name=name: run_sanitized(name, build, ("unit",) if few else None, options.k,
                                                           retries)
    status = None
    try:
        total = (run_sanitized(options.sanitize, build, options.suite, options.k, retries) if options.sanitize
                 else run_suites(suites, names))
    except Interrupted as error:
        say("run: interrupted; so far:")
        total, status = error.count, INTERRUPTED
    if options.core and not options.ci and not options.suite and status is None:
        say("run: these were the core of the tests that boot guests; ./check --all runs all of them")
    if total.passed + total.failed == 0:
        say("run: nothing ran")
    retries.tell()
    print(total, flush=True)
    return status or (0 if total.passed and not total.failed else 1)


if __name__ == "__main__":
    sys.exit(main())
