"""The command's own letters, options and messages, on the machine `none`."""

import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import ringside


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def call(self, *words, name=None, environment=None, address_space=None):
        """Runs the command with exactly these words; through a link called `name` if given, and
        with at most `address_space` bytes (ulimit -v)."""
        program = ringside.binary()
        if name is not None:
            link = self.folder / name
            link.symlink_to(program)
            program = link
        limit = [] if address_space is None else ["prlimit", f"--as={address_space}"]
        done = subprocess.run([*limit, str(program), *map(str, words)],
                              stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              env=dict(os.environ, **(environment or {})))
        return ringside.Outcome(done.returncode, done.stdout, done.stderr)

    def script(self, text, name="a.d"):
        path = self.folder / name
        path.write_text(text)
        return path

    def test_messages_have_the_name_of_the_call(self):
        outcome = self.call("-n", "BEGIN { exit(0); }", name="dtrace")

        self.assertEqual(outcome.stderr, "dtrace: description 'BEGIN ' matched 1 probe\n", outcome)

    def test_bad_usage_is_answered_in_a_line_and_no_words_with_the_usage(self):
        for words, message in ((["-y"], "dtrace1: illegal option -- y; --help lists the options\n"),
                               ([], "dtrace0: no probes specified\nUsage: dtrace0 ")):
            outcome = self.call(*words, name=f"dtrace{len(words)}")
            self.assertEqual((outcome.status, outcome.stdout), (2, ""), outcome)
            self.assertTrue(outcome.stderr.startswith(message), outcome)
            self.assertEqual(outcome.stderr.count("\n") > 1, not words, outcome)

    def said_on_a_terminal(self, *words, until=None):
        """The text on stderr, up to `until`, at which it is interrupted, or to its end."""
        ours, terminal = os.openpty()
        self.addCleanup(os.close, ours)
        said = b""
        with subprocess.Popen([ringside.binary(), *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=terminal) as process:
            os.close(terminal)
            with contextlib.suppress(OSError):  # its end
                while until is None or until not in said:
                    said += os.read(ours, 4096)
            if until is not None:
                process.send_signal(signal.SIGINT)
        return said

    def test_a_terminal_is_told_how_a_trace_ends(self):
        wayout = b"tracing; Ctrl-C ends it\r\n"
        self.assertIn(wayout, self.said_on_a_terminal("-n", "BEGIN", until=wayout))
        self.assertNotIn(wayout, self.said_on_a_terminal("-n", "BEGIN { exit(0); }"))
        self.assertEqual(self.said_on_a_terminal("-q", "-n", "BEGIN { exit(0); }"), b"")

    def test_what_is_misspelled_is_answered_with_the_nearest(self):
        for words, status, said in (
                (["whyy", "web1"], 2, "no such command: whyy; did you mean why?"),
                (["--atach", "web1"], 2, "illegal option --atach; did you mean --attach?"),
                (["-x", "strsiz=1k", "-n", "BEGIN"], 1, "Invalid option name; did you mean strsize?"),
                (["-n", "BEGIN { @ = coutn(); }"], 1, "undefined function name: coutn; did you mean count?"),
                (["-n", "BEGN"], 1, "does not match any probes: did you mean :::BEGIN?"),
                (["-n", "BEGIN /s/ { } END { s = 1; }"], 1,
                 "it is assigned later, at column 21: declare `int s;` before"),
                (["examples", "openss"], 1, "did you mean opens?")):
            with self.subTest(words):
                outcome = self.call(*words)
                self.assertEqual((outcome.status, outcome.stdout), (status, ""), outcome)
                self.assertIn(said, outcome.stderr.partition("\n")[0])

    def test_version(self):
        outcome = self.call("-V", name="dtrace")

        self.assertRegex(outcome.stdout, r"^dtrace: Sun D 1\.\d+ ")
        self.assertRegex(self.call("--version").stdout,
                         r"\Aringside \d\S+ \(D 1\.\d+\)\n\Z")

    def test_options_are_refused_in_dtraces_words(self):
        outcome = self.call("-x", "wombats=25", "-n", "BEGIN", name="dtrace")

        self.assertEqual(outcome.status, 1)
        self.assertEqual(outcome.stderr,
                         "dtrace: failed to set -x wombats: Invalid option name\n")

    def test_a_bad_pragma_option_has_its_tag_and_line(self):
        path = self.script("\n#pragma D option bufsize=lots\nBEGIN { exit(0); }\n")
        outcome = self.call("-x", "errtags", "-s", path)

        self.assertEqual(outcome.status, 1, outcome)
        self.assertIn(f"failed to compile script {path}: [D_PRAGMA_OPTSET] line 2: ",
                      outcome.stderr)

    def test_the_preprocessor(self):
        self.script("#define TEXT \"seen\"\n", "a.h")
        path = self.script("#!/usr/sbin/dtrace -Cs\n#include \"a.h\"\nBEGIN\n{\n#ifdef __SUNW_D\n"
                           "\tprintf(\"%s %d\", TEXT, NUMBER);\n#endif\n\texit(0);\n}\n")
        outcome = self.call("-qCs", path, "-D", "NUMBER=7")

        self.assertEqual((outcome.status, outcome.stdout), (0, "seen 7\n"), outcome)

    def test_an_included_files_mistake_is_found_there(self):
        header = self.script("\ntypedef nonesuch;;\nint +;\n", "b.h")
        path = self.script("#include \"b.h\"\nBEGIN\n{\n}\n")
        outcome = self.call("-Cs", path)

        self.assertEqual(outcome.status, 1, outcome)
        self.assertRegex(outcome.stderr, rf'\([^"]*{header.name}:[23]\)\n')

    def test_lines_stay_right_behind_the_preprocessor(self):
        path = self.script("/* one\n two */\n#define A\n\nBEGIN\n{\n\ttrace(1 +);\n}\n")
        outcome = self.call("-Cs", path)

        self.assertIn(f" ({path}:7)\n", outcome.stderr)

    def test_a_missing_preprocessor_is_named(self):
        outcome = self.call("-C", "-x", "cpppath=/no/such/cpp", "-n", "BEGIN")

        self.assertEqual(outcome.status, 1)
        self.assertIn("install the package cpp", outcome.stderr)

    def test_a_command_of_this_host_is_the_target_and_the_end(self):
        outcome = self.call("-n", 'BEGIN { printf("target %d", $target); } '
                            'END { printf("end"); }', "-q", "-c", "sh -c 'echo pid $$'")

        self.assertEqual(outcome.status, 0, outcome)
        pid = outcome.stdout.split("pid ")[1].split()[0]
        self.assertIn(f"target {pid}", outcome.stdout)
        self.assertIn("end", outcome.stdout)

    def test_a_command_that_goes_on_does_not_outlive_the_trace(self):
        with ringside.Run("BEGIN { exit(4); }", machine=False, command="sleep 1000") as running:
            outcome = running.finish(60)

        self.assertEqual(outcome.status, 4, outcome)

    def test_the_end_of_a_process_is_told(self):
        outcome = self.call("-n", "BEGIN", "-c", "true")

        self.assertRegex(outcome.stderr, r"\nringside: pid \d+ has exited\n", outcome)

    def test_a_command_that_is_not_there(self):
        outcome = self.call("-n", "BEGIN", "-c", "/no/such/program")

        self.assertEqual(outcome.status, 1)
        self.assertEqual(outcome.stderr, "ringside: failed to execute /no/such/program: "
                         "No such file or directory\n")

    def test_a_process_of_this_host(self):
        with subprocess.Popen(["sleep", "1000"]) as sleeper:
            program = f'BEGIN /$target == {sleeper.pid}/ {{ system("kill %d", $target); }}'
            outcome = self.call("-wq", "-n", program, "-p", sleeper.pid)
        gone = self.call("-n", "BEGIN", "-p", sleeper.pid)

        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual((gone.status, gone.stderr),
                         (1, f"ringside: failed to grab pid {sleeper.pid}: No such process\n"))

    def test_presets_of_the_environment(self):
        preset = self.call("-n", 'BEGIN { printf("x"); exit(0); }',
                           environment={"DTRACE_OPT_quiet": ""})
        wrong = self.call("-n", "BEGIN", environment={"DTRACE_OPT_WOMBATS": "1"})

        self.assertEqual((preset.stdout, preset.stderr), ("x\n", ""), preset)
        self.assertEqual(wrong.status, 1)

    def test_the_stability_report(self):
        outcome = self.call("-ev", "-n", "dtrace:::BEGIN{exit(0);}")

        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertRegex(outcome.stdout, r"^\nStability attributes for description dtrace:::BEGIN:\n\n"
                         r"\tMinimum Probe Description Attributes\n\t\tIdentifier Names: \w+\n"
                         r"\t\tData Semantics:   \w+\n\t\tDependency Class: \w+\n\n"
                         r"\tMinimum Statement Attributes\n")

    def test_a_list_with_details(self):
        outcome = self.call("-lv", "-n", "BEGIN")

        self.assertRegex(outcome.stdout, r"BEGIN\n\n\tArgument Types\n\t\tNone\n"
                         r"\n\tProbe Description Attributes\n"
                         r"\t\tIdentifier Names: \w+\n(.*\n)+\n\tArgument Attributes\n")

    def test_each_form_of_a_list(self):
        for words in (["-n", "BEGIN"], ["-P", "dtrace"], ["-i", "1"], ["-m", "dtrace:"],
                      ["-f", "dtrace::"]):
            outcome = self.call("-l", *words)
            self.assertEqual(outcome.status, 0, outcome)
            self.assertRegex(outcome.stdout, r"^   ID   PROVIDER .*\n +\d+ +dtrace ")

    def test_buffers_that_cannot_be_had(self):
        lowered = self.call("-n", "BEGIN { exit(0); }", "-b", "1000t")
        manual = self.call("-n", "BEGIN { exit(0); }", "-b", "1000t", "-x", "bufresize=manual")

        self.assertEqual(lowered.status, 0, lowered)
        self.assertRegex(lowered.stderr, r"ringside: buffer size lowered to \d+[kmg]?\n")
        self.assertEqual(manual.status, 1)
        self.assertIn("could not enable tracing: Cannot allocate memory", manual.stderr)

    def test_a_program_is_saved_and_run(self):
        saved = self.folder / "x.dof"
        written = self.call("compile", "-o", saved, "-n", 'BEGIN { printf("saved"); exit(3); }')
        outcome = self.call("run", saved, "-q")
        saved.write_bytes(saved.read_bytes()[:-9])
        broken = self.call("run", saved)

        self.assertEqual((written.status, written.stderr), (0, ""), written)
        self.assertEqual((outcome.status, outcome.stdout), (3, "saved\n"), outcome)
        self.assertEqual(broken.status, 1, broken)
        self.assertIn(f"{saved}: ", broken.stderr)

    def test_a_saved_program_cannot_take_the_memory_away(self):
        """In 1 GB of address space: lowered or refused in one line."""
        saved = self.folder / "x.dof"
        options = "".join(f"#pragma D option {option}\n" for option in (
            "bufsize=1t", "aggsize=1t", "dynvarsize=1t", "specsize=1t", "nspec=100000",
            "strsize=64k", "quiet"))
        strings = "".join(f's{i} = "";' for i in range(2000))
        for body, status, text in (("exit(3);", 3, ""),
                                   (strings + "exit(3);", 1, "variables take 131072000 bytes")):
            script = self.script(options + "BEGIN {" + body + "}")
            written = self.call("compile", "-o", saved, "-s", script)
            outcome = self.call("run", saved, address_space=1 << 30)

            self.assertEqual(written.status, 0, written)
            self.assertEqual(outcome.status, status, outcome)
            self.assertIn(text, outcome.stderr)
            self.assertLessEqual(len(outcome.stderr.splitlines()), 1, outcome)

    def test_no_address_space_at_all_is_one_line(self):
        refused = []
        for mebibytes in range(64, 2, -1):
            outcome = self.call("-q", "-n", "BEGIN { exit(0); }", "-x", "scratchsize=64m",
                                address_space=mebibytes << 20)
            # Not even the libraries can be loaded, or what is made before main().
            if outcome.status == 127 or (outcome.status == -6 and not outcome.stderr.strip()):
                break
            if outcome.status != 0:
                refused.append(outcome)

        self.assertTrue(refused)
        for outcome in refused:
            self.assertEqual(outcome.status, 1, outcome)
            self.assertRegex(outcome.stderr, r"\Aringside: (out of memory|no thread can be started: .*)\n\Z")

    def test_libraries_are_read_unless_unwanted(self):
        self.script("inline int answer = 42;\n", "own.d")
        outcome = self.call("-q", "-L", self.folder, "-n",
                            'BEGIN { printf("%d", answer); exit(0); }')
        missing = self.call("-L", "/no/such/folder", "-n", "BEGIN { exit(5); }")

        self.assertEqual((outcome.status, outcome.stdout), (0, "42\n"), outcome)
        self.assertEqual(missing.status, 5, missing)

    def test_what_cannot_be_done_is_one_line(self):
        for words in (["-A"], ["-a"], ["-G"], ["-h"]):
            outcome = self.call(*words, "-n", "BEGIN")
            self.assertEqual((outcome.status, len(outcome.stderr.splitlines())), (1, 1), outcome)


if __name__ == "__main__":
    unittest.main()
