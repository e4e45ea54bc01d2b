#!/usr/bin/env python3
"""The runner's counting, on reports and tests made up for the purpose."""

import contextlib
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from unittest import mock

import core
import run
import sanitizers
import tidy
from retries import Retries
from run import Count

REPORT = """<testsuites><testsuite name="S">
 <testcase name="good" status="run" result="completed"/>
 <testcase name="bad" status="run" result="completed"><failure message="m"/></testcase>
 <testcase name="left" status="run" result="skipped"><skipped message="m"/></testcase>
 <testcase name="off" status="notrun" result="suppressed"/>
</testsuite></testsuites>"""

VM_TESTS = """
import unittest
class Some(unittest.TestCase):
    def test_good(self): pass
    def test_bad(self): self.fail("on purpose")
    def test_left(self): self.skipTest("why not")
    def test_two_bad_parts(self):
        for part in "ab":
            with self.subTest(part): self.fail(part)
class NoStart(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise OSError("no guest")
    def test_never(self): pass
"""

LUCKY_TESTS = """
import pathlib, unittest
class Lucky(unittest.TestCase):
    def test_passes_the_second_time(self):
        mark = pathlib.Path(__file__).with_name("mark-" + type(self).__name__)
        if not mark.exists():
            mark.touch()
            self.fail("at first")
class AlsoLucky(Lucky): pass
class Bad(unittest.TestCase):
    def test_good(self): pass
    def test_bad(self): self.fail("always")
"""

PATIENT_TESTS = """
import pathlib, sys, time, unittest
FOLDER = pathlib.Path(__file__).parent
class Patient(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.addClassCleanup((FOLDER / "class-cleaned").touch)
    def test_a_good(self): pass
    def test_b_waits(self):
        self.addCleanup((FOLDER / "cleaned").touch)
        print("waiting", flush=True)
        time.sleep(600)
    def test_c_never(self): pass
"""

ENDING_TEST = """
import os, unittest
class Ending(unittest.TestCase):
    def test_ends_its_process(self): os._exit(3)
"""


# One test has passed, one waits; SIGTERM ends both, and the terminal's own SIGINT does not.
MESON = """#!/bin/sh
mkdir "$3/meson-logs"
for test in 'good", "result": "OK' 'waits", "result": "INTERRUPT'; do
  printf '{"name": "folder / %s", "command": ["x"]}\\n' "$test"
done > "$3/meson-logs/testlog.json"
trap 'touch "$3/ended"; exit 1' TERM
trap '' INT
echo waiting
while :; do sleep 0.1; done
"""


class Tidying(unittest.TestCase):
    def test_words_of_comments_do_not_count(self):
        self.assertEqual(tidy.without_words(b"int a;  // one\n/* b */ int b;\n// two\nint c;"),
                         b"int a;  //\n/* b */ int b;\n//\nint c;")

    def test_what_clang_tidy_reads_counts(self):
        for text in (b"int A;  // NOLINT(readability-identifier-naming)", b"// NOLINTNEXTLINE\nint A;",
                     b'open("qmp://here", 1);'):
            self.assertEqual(tidy.without_words(text), text)


class Counting(unittest.TestCase):
    def meson(self, result, report=None):
        """The count of one line of meson's log, with a GoogleTest report or without."""
        with tempfile.TemporaryDirectory() as folder:
            if report is not None:
                pathlib.Path(folder, "x_test.xml").write_text(report)
            entry = {"command": ["/somewhere/x_test", "-v"], "result": result}
            return run.count_meson_test(entry, pathlib.Path(folder))

    def test_gtest_cases_are_counted_one_by_one(self):
        report = xml.etree.ElementTree.fromstring(REPORT)

        self.assertEqual(run.count_gtest(report), Count(passed=1, failed=1, skipped=2))

    def test_a_program_without_a_report_is_one_test(self):
        self.assertEqual(self.meson("OK"), Count(passed=1))
        self.assertEqual(self.meson("SKIP"), Count(skipped=1))
        self.assertEqual(self.meson("FAIL"), Count(failed=1))

    def test_a_crash_fails_even_when_every_case_passed(self):
        report = '<testsuites><testcase name="a" status="run" result="completed"/></testsuites>'

        self.assertEqual(self.meson("FAIL", report), Count(passed=1, failed=1))
        self.assertEqual(self.meson("TIMEOUT", "<testsuites><cut off"), Count(failed=1))

    def test_vm_tests_fail_once_each_and_a_missing_guest_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "test_made_up.py").write_text(VM_TESTS)
            with contextlib.redirect_stderr(io.StringIO()) as progress:
                count = run.run_vm(folder, None)

        self.assertEqual(count, Count(passed=1, failed=3, skipped=1))
        self.assertIn("test_made_up.Some.test_bad FAILED", progress.getvalue())
        self.assertIn("no guest", progress.getvalue())

    def test_what_fails_runs_again_as_often_as_retries_are_left(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "test_made_up.py").write_text(LUCKY_TESTS)
            for processes in (1, 2):
                for most, expected in ((0, Count(1, 3)), (1, Count(2, 2)), (9, Count(3, 1))):
                    with self.subTest(processes=processes, most=most):
                        for mark in pathlib.Path(folder).glob("mark-*"):
                            mark.unlink()
                        self.assertEqual(self.in_processes(folder, processes, most), expected)

    def test_what_has_run_again_is_named(self):
        retries = Retries(1)
        with contextlib.redirect_stderr(io.StringIO()) as progress:
            self.assertEqual(retries("good", Count(2), self.fail), Count(2))
            self.assertEqual(retries("bad", Count(1, 1), lambda: Count(2)), Count(2))
            self.assertEqual(retries("worse", Count(1, 1), self.fail), Count(1, 1))
            retries.tell()

        self.assertEqual(progress.getvalue(), "run: bad failed: it runs again\n"
                                              "run: failed at first, see above: bad\n")

    def test_a_meson_test_that_fails_runs_again(self):
        said = [[("a", Count(2)), ("b", Count(1, 1))], [("b", Count(2))]]
        with mock.patch("run.run_meson_tests", side_effect=said) as ran, \
                contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(run.run_meson(pathlib.Path("/b"), None, ("--suite", "live"), Retries(1)), Count(4))
        self.assertEqual([call.args[1] for call in ran.call_args_list], [[], ["b"]])

    def test_classes_of_vm_tests_run_in_several_processes(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "test_made_up.py").write_text(VM_TESTS)
            pathlib.Path(folder, "test_unreadable.py").write_text("import nothing_of_this_name")
            self.assertEqual(self.in_processes(folder), Count(passed=1, failed=4, skipped=1))
            pathlib.Path(folder, "test_end.py").write_text(ENDING_TEST)
            self.assertGreater(self.in_processes(folder).failed, 0)

    def test_a_class_that_would_begin_too_late_is_skipped_and_named(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "test_late.py").write_text(VM_TESTS)
            with contextlib.redirect_stderr(io.StringIO()) as progress:
                count = run.run_vm(folder, None, until=0)

        self.assertEqual(count, Count(skipped=5))
        self.assertIn("test_late.NoStart skipped: no time is left", progress.getvalue())

    def test_tests_are_selected_by_how_their_names_begin(self):
        def tests(*names):
            return [mock.Mock(id=lambda name=name: name) for name in names]
        classes = {"test_a.One": tests("test_a.One.test_x"), "unittest": tests("unittest.loader._FailedTest.b"),
                   "test_a.Two": tests("test_a.Two.test_x", "test_a.Two.test_y")}

        def names(*lists):
            return [test.id() for tests in run.selected(classes, lists).values() for test in tests]

        self.assertEqual(run.selected(classes, ()), classes)
        self.assertEqual(names(("test_a.O", "test_a.Two.test_y")),
                         ["unittest.loader._FailedTest.b", "test_a.One.test_x", "test_a.Two.test_y"])
        self.assertEqual(names(("test_a.Two.test_y", "test_a.O", "test_a.Two")),
                         ["unittest.loader._FailedTest.b", "test_a.Two.test_x", "test_a.Two.test_y",
                          "test_a.One.test_x"])
        self.assertEqual(names(("test_a.Two.test_y",), ("test_a.Two", "test_a.O")),
                         ["unittest.loader._FailedTest.b", "test_a.Two.test_y", "test_a.Two.test_x",
                          "test_a.One.test_x"])
        self.assertEqual(list(run.selected(classes, (("test_a.Two.test_y",), ("test_a.Two",)))),
                         ["unittest", "test_a.Two", "test_a.Two, more"])
        self.assertEqual(run.selected({"test_a.One": classes["test_a.One"]}, (("test_b",),)), {})

    def test_each_word_of_the_core_begins_a_name(self):
        for folder, words in (("vm", core.VM + core.VM_BESIDE), ("nested", core.NESTED)):
            for word in words:
                module, group, test = (word.split(".") + ["", ""])[:3]
                path = run.HERE / folder / f"{module}.py"
                self.assertTrue(path.exists() or any(path.parent.glob(f"{module}*.py")), word)
                if group:
                    text = path.read_text()
                    classes = [*re.findall(r"^class (\w+)", text, re.MULTILINE),
                               *(("debian_6_1_cpus_2", "debian_6_12_cpus_1", "debian_6_1", "debian_6_12")
                                 if "on_each(" in text else ())]
                    self.assertTrue(any(name.startswith(group) for name in classes), word)
                    self.assertIn(f"def {test}", text, word)

    def test_each_word_of_the_core_of_live_names_a_fixture(self):
        sources = "".join(path.read_text() for path in (run.HERE / "live").glob("*_test.cc"))
        for word in core.LIVE.removeprefix("-").split(":"):
            fixture = word.removeprefix("*").split(".")[0]
            self.assertIn(f"TEST_P({fixture}, ", sources)

    def test_an_interrupt_lets_the_test_clean_up_and_counts_what_passed(self):
        script = (f"import sys; sys.path.insert(0, {str(run.HERE)!r}); import run\n"
                  "try: run.run_suites({'vm': lambda: run.run_vm(sys.argv[1], None)}, ['vm'])\n"
                  "except run.Interrupted as error: print(error.count)")
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "test_made_up.py").write_text(PATIENT_TESTS)
            with subprocess.Popen([sys.executable, "-B", "-c", script, folder], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
                self.assertEqual(process.stdout.readline(), "waiting\n")
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.stdout.read(), "1 passed, 0 failed\n")
            for mark in ("cleaned", "class-cleaned"):
                self.assertTrue(pathlib.Path(folder, mark).exists(), mark)

    def test_an_interrupt_ends_all_of_mesons_tests_and_counts_what_passed(self):
        script = (f"import pathlib, sys; sys.path.insert(0, {str(run.HERE)!r}); import run\n"
                  "try: run.run_meson(pathlib.Path(sys.argv[1]), None, ())\n"
                  "except run.Interrupted as error: print(error.count)")
        with tempfile.TemporaryDirectory() as folder:
            meson = pathlib.Path(folder, "meson")
            meson.write_text(MESON)
            meson.chmod(0o755)
            environment = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")
            with subprocess.Popen([sys.executable, "-B", "-c", script, folder], text=True, env=environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                self.assertEqual(process.stderr.readline(), "waiting\n")
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.stdout.read(), "1 passed, 0 failed\n")
            self.assertTrue(pathlib.Path(folder, "ended").exists())

    def in_processes(self, folder, processes=2, retries=0):
        """The count of a folder's tests in processes that are forked from one of their own."""
        script = (f"import sys; sys.path.insert(0, {str(run.HERE)!r}); import run\n"
                  f"print(run.run_vm({folder!r}, None, {processes}, run.Retries({retries})))")
        done = subprocess.run([sys.executable, "-B", "-c", script], text=True, check=True, capture_output=True)
        return run.read_count(done.stdout)

    def test_the_last_line(self):
        self.assertEqual(str(Count(3, 0)), "3 passed, 0 failed")
        self.assertEqual(str(Count(3, 1, 2)), "3 passed, 1 failed, 2 skipped")

    def test_the_last_line_is_read_as_it_is_written(self):
        for count in (Count(3, 0), Count(3, 1, 2)):
            self.assertEqual(run.read_count(f"more\n{count}\n"), count)
        self.assertEqual(run.read_count(""), Count(failed=1))
        self.assertEqual(run.read_count("3 passed, 0 failed\nTraceback"), Count(failed=1))

    def test_which_suites_run(self):
        first = ["meson", "golden", "meson"]
        nested = f"start run.py --retries {run.RETRIES}"
        self.assertEqual(self.ran(), [*first, f"{nested} --core", "vm core"])
        self.assertEqual(self.ran("--all"), [*first, "start run.py --retries 0", "vm"])
        self.assertEqual(self.ran("-k", "storm"), [*first, "start run.py storm --retries 0", "vm"])
        self.assertEqual(self.ran("--ci"), [*first, nested, "start tidy.py --program", "vm", "sanitized address",
                                            "start packages.py"])
        self.assertEqual(self.ran("--ci", processors=core.ENOUGH_PROCESSORS - 1),
                         ["meson", "golden", "sanitized address", "start tidy.py --program", "meson",
                          f"{nested} --core", "vm core", "start packages.py"])
        self.assertEqual(self.ran("--core", "--suite", "vm"), ["vm core"])
        self.assertEqual(self.ran("--core", "--suite", "nested"), ["vm core"])
        self.assertEqual(self.ran("--nightly"), [*first, nested, "start tidy.py", "vm", "sanitized address",
                                                 "sanitized thread", "start packages.py"])
        self.assertEqual(self.ran("--suite", "unit"), ["meson"])
        self.assertEqual(self.ran("--suite", "nested"), ["vm"])
        self.assertEqual(self.ran("--ci", "--suite", "unit"),
                         ["meson", "start tidy.py --program", "sanitized address", "start packages.py"])

    def ran(self, *options, processors=core.ENOUGH_PROCESSORS):
        """All that main() runs and starts, in this order, when each of it counts one test."""
        done = []

        def fake(name, result=Count(passed=1)):
            def call(*args, **_):
                words = [word for word in args if name in ("start", "sanitized") and isinstance(word, str)]
                if name == "vm" and args[-1]:
                    words = ["core"]
                told = " ".join([name, *(word for word in words if word not in ("--suite", "nested"))])
                done.append(re.sub(r" --minutes \S+", "", told))
                return result
            return call
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch("sys.argv", ["run.py", *options]))
            stack.enter_context(mock.patch("os.cpu_count", lambda: processors))
            for name in ("meson", "golden", "vm", "sanitized"):
                stack.enter_context(mock.patch(f"run.run_{name}", fake(name)))
            stack.enter_context(mock.patch("run.start", fake("start", lambda: Count(passed=1))))
            stack.enter_context(mock.patch.dict("os.environ"))
            stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            output = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            self.assertEqual(run.main(), 0)
        self.assertEqual(output.getvalue(), f"{len(done)} passed, 0 failed\n")
        return done

    def test_a_sanitizer_builds_the_programs_of_its_suite_only(self):
        def test(name, program, *suites):
            return {"name": name, "cmd": [program], "suite": [f"ringside:{s}" for s in suites]}
        tests = [test("fire path", "/b/fire_test", "unit", "threads"), test("dif", "/b/d/dif_test", "unit"),
                 test("layers", "/usr/bin/python3", "unit")]
        folder = pathlib.Path("/b")

        self.assertEqual(sanitizers.programs(tests, "threads", "", folder), ["fire_test"])
        self.assertEqual(sanitizers.programs(tests, "unit", "", folder), ["fire_test", "d/dif_test"])
        self.assertEqual(sanitizers.programs(tests, "unit", "dif", folder), ["d/dif_test"])

    def test_few_processors_build_all_but_the_unit_tests(self):
        def target(name, kind="executable", by_default=True):
            return {"type": kind, "filename": [f"/b/{name}"], "build_by_default": by_default}
        tests = [{"cmd": ["/b/dif_test"], "suite": ["ringside:unit", "ringside:threads"]},
                 {"cmd": ["/b/attach_live_test"], "suite": ["ringside:unit", "ringside:kvm"]},
                 {"cmd": ["/b/leave_test"], "suite": ["ringside:live"]}]
        targets = [target("ringside"), target("dif_test"), target("attach_live_test"), target("leave_test"),
                   target("lib.stamp", "custom"), target("dif.a", "static library"),
                   target("bench", "custom", False)]

        self.assertEqual(core.programs_and_data(targets, tests),
                         ["/b/ringside", "/b/attach_live_test", "/b/leave_test", "/b/lib.stamp"])

    def test_a_sanitizer_is_given_addresses_that_are_not_too_random(self):
        for bits, asked in ((28, []), (32, [mock.call(sanitizers.ADDR_NO_RANDOMIZE)])):
            with tempfile.TemporaryDirectory() as folder, mock.patch("ctypes.CDLL") as libc:
                path = pathlib.Path(folder, "mmap_rnd_bits")
                path.write_text(f"{bits}\n")
                sanitizers.settle_addresses(path)
            self.assertEqual(libc.return_value.personality.call_args_list, asked)

    def test_clang_tidy_looks_at_each_source_once_and_at_tests_less_strictly(self):
        files = ("vmm/a.cc", "vmm/a_test.cc", "vmm/a_bench.cc", "vmm/testing/b.cc", "tests/fuzz/c.cc")
        with tempfile.TemporaryDirectory() as text:
            folder = pathlib.Path(text)
            united = folder / "lib-unity0.cpp"
            united.write_text("".join(f"#include<{tidy.ROOT / name}>\n" for name in ("dif/d.cc", "dif/e.cc")))
            entries = [{"file": str(path), "command": f"c++ -o x -c {path}"}
                       for path in (*(tidy.ROOT / name for name in files), tidy.ROOT / "vmm/a.cc", united)]
            entries.append({"file": str(folder / "grammar.cc"), "command": "c++"})
            (folder / "compile_commands.json").write_text(json.dumps(entries))

            def names(*selection):
                return [unit.names for unit in tidy.units(folder, *selection)]

            self.assertEqual(names(""), [*((name,) for name in files), ("dif/d.cc", "dif/e.cc")])
            self.assertEqual(names("fuzz"), [("tests/fuzz/c.cc",)])
            self.assertEqual(names("dif/e"), [("dif/d.cc", "dif/e.cc")])
            self.assertEqual(names("", True), [("vmm/a.cc",), ("dif/d.cc", "dif/e.cc")])
            self.assertEqual([unit.names for unit in tidy.units(folder, "vmm/") if not unit.checks],
                             [("vmm/a.cc",)])


class Compare(unittest.TestCase):
    def test_what_is_missing_is_told_at_once_and_whole(self):
        nowhere = {"RINGSIDE_BUILD": "/nonexistent/build", "RINGSIDE_IMAGES": "/nonexistent/images",
                   "PATH": "/nonexistent"}
        program = pathlib.Path(run.__file__).parent / "bench/compare"

        told = subprocess.run([sys.executable, program], text=True, capture_output=True, check=False,
                              env={**os.environ, **nowhere})

        self.assertEqual(told.returncode, 1, told)
        for way_out in ("images/build --compare", "apt-get install qemu-system-x86", "ninja -C build ringside",
                        "-Dbench=enabled"):
            self.assertIn(way_out, told.stderr)


class Documents(unittest.TestCase):
    PAGES = (*run.ROOT.glob("*.md"), *run.ROOT.glob("*/*.md"), *run.ROOT.glob("tests/*/*.md"))

    @staticmethod
    def anchors(page):
        """The anchors of a page's headings."""
        return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
                for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)]

    def test_links_between_pages_lead_somewhere(self):
        self.assertGreater(len(self.PAGES), 10)
        for page in self.PAGES:
            for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
                with self.subTest(page=page.name, link=link):
                    path, _, anchor = link.partition("#")
                    target = page.parent / path if path else page
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, self.anchors(target))

    def test_the_front_page_stays_short(self):
        lines = (run.ROOT / "README.md").read_text().splitlines()
        self.assertLessEqual(len(lines), 150)
        self.assertLessEqual(max(map(len, lines)), 100)

    def test_each_page_for_users_is_listed(self):
        listed = (run.ROOT / "docs/README.md").read_text()
        for page in (run.ROOT / "docs").glob("*.md"):
            if page.name != "README.md":
                self.assertIn(f"({page.name})", listed)


class Listing(unittest.TestCase):
    def test_every_file_that_boots_guests_says_what_it_tests(self):
        for pattern in ("live/*_test.cc", "vm/test_*.py", "nested/test_*.py"):
            for path in sorted(run.HERE.glob(pattern)):
                with self.subTest(path):
                    self.assertRegex(run.first_words(path), r".{20,}[.:]?$")

    def test_the_list_names_each_file_once(self):
        with contextlib.redirect_stdout(io.StringIO()) as output, mock.patch("sys.argv", ["run.py", "--list"]):
            self.assertEqual(run.main(), 0)
        self.assertEqual(output.getvalue().count("vm/test_storm.py: Many firings at once"), 1)


if __name__ == "__main__":
    unittest.main()
