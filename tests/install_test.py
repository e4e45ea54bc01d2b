#!/usr/bin/env python3
"""`meson install` puts everything in its place, and what it installs runs: install_test.py BUILD"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

import perfetto_trace

BUILD = pathlib.Path(sys.argv.pop())
ROOT = pathlib.Path(__file__).resolve().parents[1]
EXPECTED = ("bin/ringside", "include/ringside.h", "share/ringside/lib/procfs.d", "share/man/man1/ringside.1",
            "share/man/man7/ringside-d.7", "share/bash-completion/completions/ringside",
            "share/zsh/site-functions/_ringside",
            *(f"share/ringside/examples/{path.name}" for path in (ROOT / "examples").iterdir()),
            *(f"share/doc/ringside/{path.relative_to(ROOT / 'docs')}" for path in (ROOT / "docs").rglob("*")
              if path.is_file() and "man" not in path.parts))


# Their folders depend on the host's Debian and Python.
LIBRARY = ("libringside.so", "libringside.so.0", "libringside.so.0.1.0", "pkgconfig/ringside.pc")
PACKAGE = ("__init__.py", "__init__.pyi", "py.typed")


VMS = """NAME  PID  VMM   ACCEL  STATE    VCPUS  MEMORY  KERNEL  OURS  ATTACH
web1  11   qemu  tcg    running  1      512M    6.1     -     web1
web2  12   qemu  tcg    running  1      512M    6.1     -     qmp:/run/web2.sock
old   13   qemu  tcg    running  1      512M    -       -     no: its monitor is taken
"""


class Installing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run(["meson", "install", "--no-rebuild", "-C", BUILD, "--destdir", cls.folder.name],
                       check=True, capture_output=True)
        cls.prefix = next(pathlib.Path(cls.folder.name).rglob("bin/ringside")).parents[1]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_everything_is_there_and_nothing_else(self):
        there = {path.relative_to(self.prefix).as_posix()
                 for path in self.prefix.rglob("*") if path.is_file()}

        self.assertLessEqual(set(EXPECTED), there)
        self.assertEqual({path for path in there if not path.startswith(("share/ringside/lib/", "lib/"))},
                         {path for path in EXPECTED if not path.startswith("share/ringside/lib/")})
        in_lib = {re.sub("^lib/(x86_64-linux-gnu/)?", "", path) for path in there if path.startswith("lib/")}
        package = {path.rpartition("/")[2] for path in in_lib if "/ringside/" in path}
        self.assertEqual({path for path in in_lib if "/ringside/" not in path}, set(LIBRARY))
        if package:  # where pybind11 is
            self.assertEqual({name for name in package if not name.startswith("_ringside.")}, set(PACKAGE))
        sources = ROOT / "dif/d/library"
        # regs.d is made from the architecture's table of registers.
        self.assertEqual({path.name for path in (self.prefix / "share/ringside/lib").iterdir()},
                         {path.name for path in sources.glob("*.d")} | {"regs.d"})

    def test_a_program_is_made_with_the_library_by_pkg_config(self):
        found = next(self.prefix.rglob("ringside.pc")).parent
        env = {**os.environ, "PKG_CONFIG_PATH": str(found), "PKG_CONFIG_SYSROOT_DIR": self.folder.name,
               "LD_LIBRARY_PATH": str(found.parent)}
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "ringside"], env=env, text=True,
                               check=True, capture_output=True).stdout.split()
        source = """#include <ringside.h>
                    #include <stdio.h>
                    int main(void) { return puts(ringside_version()) < 0; }"""
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "program")
            subprocess.run(["cc", "-xc", "-", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o",
                            program, *flags], input=source, text=True, check=True)
            said = subprocess.run([program], env=env, text=True, check=True, capture_output=True).stdout

        self.assertEqual(said, "0.1.0\n")

    def test_the_library_shows_its_versioned_functions_alone(self):
        library = next(self.prefix.rglob("libringside.so.0.1.0"))
        said = subprocess.run(["nm", "-D", "--defined-only", library], text=True, check=True,
                              capture_output=True).stdout
        shown = {line.split()[2] for line in said.splitlines()} - {"RINGSIDE_0"}
        header = (ROOT / "library/ringside.h").read_text()
        declared = set(re.findall(r"RINGSIDE_API [^;(]*?\b(ringside_\w+)\(", header))

        self.assertEqual(shown, {f"{name}@@RINGSIDE_0" for name in declared})

    def test_the_installed_command_finds_its_libraries(self):
        done = subprocess.run(
            [self.prefix / "bin/ringside", "-q", "-n",
             'BEGIN { printf("%d\\n", SIGKILL); exit(0); }'],
            capture_output=True, text=True, check=False, timeout=600,
            env={"PATH": os.environ["PATH"], "HOME": self.folder.name})

        self.assertEqual((done.returncode, done.stdout.strip()), (0, "9"), done.stderr)

    def test_a_command_without_its_libraries_says_where_it_looked(self):
        with tempfile.TemporaryDirectory() as alone:
            shutil.copy(self.prefix / "bin/ringside", alone)
            run = [pathlib.Path(alone, "ringside"), "-q", "-n", "BEGIN { exit(SIGKILL); }"]
            without = subprocess.run(run, capture_output=True, text=True, check=False, timeout=600)
            pointed_to = subprocess.run([*run, "-L", self.prefix / "share/ringside/lib"],
                                        capture_output=True, text=True, check=False, timeout=600)
            declined = subprocess.run([*run, "-x", "nolibs"], capture_output=True, text=True,
                                      check=False, timeout=600)

            first = without.stderr.partition("\n")[0]
            self.assertIn("its D libraries are not found", first, without.stderr)
            self.assertIn(f"{alone}/lib", first, without.stderr)
            self.assertIn("-L DIR", first, without.stderr)
            self.assertEqual(without.returncode, 1, without.stderr)
            self.assertEqual((pointed_to.returncode, pointed_to.stderr), (9, ""))
            self.assertNotIn("libraries", declined.stderr)

    def test_the_installed_command_finds_its_examples(self):
        done = subprocess.run([self.prefix / "bin/ringside", "examples", "opens"],
                              capture_output=True, text=True, check=False, timeout=600)

        self.assertEqual((done.returncode, done.stdout.partition("\n")[0]),
                         (0, "#!/usr/bin/env -S ringside -s"), done.stderr)

    def draw(self, *words, **settings):
        return subprocess.run([self.prefix / "bin/ringside", "draw", *words], capture_output=True, text=True,
                              check=False, timeout=600, **settings)

    def test_pictures_are_documents_in_which_names_of_a_guest_are_text(self):
        name = "<script>alert(1)</script>]]>\x01\"'&"
        frame = {"address": "0x401000", "name": f"{name}`{name}+0x1", "module": name, "symbol": name, "offset": 1}
        output = [{"aggregation-data": [{"keys": [name, [frame, frame]], "count": 7}], "aggregation-name": name},
                  {"aggregation-data": [{"keys": [name], "buckets": [{"value": 1, "count": 3, "range": name},
                                                                     {"value": 2, "count": 0}]}],
                   "aggregation-name": name}]
        records = [{"timestamp": 1, "machine": machine, "provider": "tick", "name": name, "output": output[at:at + 1]}
                   for machine in (name, "b") for at in (0, 1)]
        for picture, kept in (("flame", records[::2]), ("heatmap", records[1::2])):
            lines = "".join(json.dumps(record) + "\n" for record in kept)
            done = self.draw(picture, input=lines)

            self.assertEqual(done.returncode, 0, done.stderr)
            elements = list(ElementTree.fromstring(done.stdout).iter())
            tags = [element.tag.partition("}")[2] for element in elements]
            self.assertEqual(tags.count("script"), 1 if picture == "flame" else 0)
            self.assertLessEqual(set(tags), {"svg", "title", "style", "rect", "g", "text", "script"})
            self.assertFalse([name for element in elements for name in element.attrib if name.startswith("on")])
            self.assertIn("<script>alert(1)</script>]]>", "".join(element.text or "" for element in elements))

    def test_a_file_for_perfetto_keeps_the_rules_of_its_reader(self):
        name = "<b>\u0001\n\u00e4"
        calls = [("entry", 10), ("entry", 20), ("return", 20), ("return", 30), ("return", 40), ("entry", 50)]
        records = [{"timestamp": time, "machine": machine, "cpu": 0, "provider": "fbt", "module": "vmlinux",
                    "function": name, "name": end, "pid": 7, "tid": tid, "execname": name,
                    "output": [{"type": "string", "value": name}]}
                   for machine in (name, "b") for tid in (7, 8) for end, time in calls]
        counts = [{"keys": [name, index], "count": index} for index in range(3)]
        output = [{"aggregation-data": counts, "aggregation-name": "a"}]
        records.append({"timestamp": 60, "machine": "b", "cpu": 0, "provider": "profile", "module": "", "function": "",
                        "name": "tick-1s", "output": output})
        lines = "".join(json.dumps(record) + "\n" for record in records)
        with tempfile.TemporaryDirectory() as folder:
            drawn = pathlib.Path(folder, "a.pftrace")
            done = self.draw("perfetto", "-o", drawn, input=lines)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            trace = perfetto_trace.Trace(drawn.read_bytes())

        clean = "<b>\ufffd\n\u00e4"
        self.assertEqual(sorted((each.name, each.time, each.end, each.depth) for each in trace.slices),
                         sorted(4 * [(clean, 10, 30, 0), (clean, 20, 21, 1)]))
        self.assertEqual([each.time for each in trace.open], 4 * [50])
        self.assertEqual([each.name for each in trace.instants], 4 * [clean + ":return"])
        self.assertEqual(trace.named("process"), [f"{clean}: {clean}", f"b: {clean}"])
        self.assertEqual(sorted(trace.counters().values()), [[0], [1], [2]])

    def test_draw_says_which_line_is_none_and_writes_over_no_picture(self):
        record = json.dumps({"timestamp": 1, "provider": "fbt", "name": "entry", "output": []})
        with tempfile.TemporaryDirectory() as folder:
            saved, picture = pathlib.Path(folder, "a.jsonl"), pathlib.Path(folder, "a.svg")
            saved.write_text(f"{record}\n{record[:20]}\n")
            picture.write_text("<svg/>")
            key = {"keys": [[]], "count": 1}
            good = json.dumps({"timestamp": 1, "provider": "fbt", "name": "entry",
                               "output": [{"aggregation-data": [key], "aggregation-name": "a"}]})

            cut = self.draw("flame", saved)
            empty = self.draw("folded", input=record)
            kept = self.draw("flame", "-o", picture, input=good)

            self.assertEqual((cut.returncode, cut.stdout, cut.stderr),
                             (1, "", f"ringside: draw: {saved}: line 2: it is no JSON: cut off, damaged, or no output "
                                     "of -O jsonl\n"))
            self.assertEqual((empty.returncode, empty.stdout), (1, ""))
            self.assertIn("standard input: there is nothing to draw; a picture needs a count()", empty.stderr)
            self.assertEqual((kept.returncode, picture.read_text()), (1, "<svg/>"))
            self.assertIn(f"{picture} is not empty, and a picture cannot be appended to it", kept.stderr)

    def complete(self, *words):
        """The words that bash offers for the last one; ":" parts words as it does on a command line."""
        completion = self.prefix / "share/bash-completion/completions/ringside"
        parts = [part for word in words for part in re.findall(r"[^:]+|:", word) or [""]]
        with tempfile.TemporaryDirectory() as text:
            command = pathlib.Path(text) / "ringside"
            command.write_text(f"#!/bin/sh\ncase $1 in vms) cat <<'END'\n{VMS}END\n;;\n"
                               "examples) printf 'opens  who opens\\nruns   who runs\\n\\nmore\\n';; esac\n")
            command.chmod(0o755)
            line = " ".join([str(command), *words])
            last = "" if parts[-1] == ":" else parts[-1]
            array = " ".join(f"'{part}'" for part in [str(command), *parts])
            script = (f"compopt() {{ :; }}; . {completion}; COMP_WORDS=({array}); COMP_CWORD={len(parts)}\n"
                      f"COMP_LINE='{line}'; COMP_POINT={len(line)}\n_ringside {command} '{last}' '{([command, *parts])[-2]}'\n"
                      'printf "%s\\n" "${COMPREPLY[@]}"')
            # Elsewhere the names of files would be offered, too.
            return subprocess.run(["bash", "-c", script], text=True, capture_output=True, check=True,
                                  cwd=text).stdout.split()

    def test_targets_and_examples_are_those_that_there_are(self):
        self.assertEqual(self.complete("--attach", ""), ["web1", "qmp:/run/web2.sock"])
        self.assertEqual(self.complete("--attach", "we"), ["web1"])
        self.assertEqual(self.complete("--attach", "qmp:/run/w"), ["/run/web2.sock"])
        self.assertEqual(self.complete("why", "w"), ["web1"])
        self.assertEqual(self.complete("ps", "w"), ["web1"])
        self.assertEqual(self.complete("clean", "web1", "q"), ["qmp:/run/web2.sock"])
        self.assertEqual(self.complete("examples", "o"), ["opens"])
        self.assertEqual(self.complete("exa"), ["examples"])

    def test_a_stripped_command_is_small(self):
        small = pathlib.Path(self.folder.name, "stripped")
        subprocess.run(["strip", "-o", small, self.prefix / "bin/ringside"], check=True)

        self.assertLess(small.stat().st_size, 10 << 20)


if __name__ == "__main__":
    unittest.main()
