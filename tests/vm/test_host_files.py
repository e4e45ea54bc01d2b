"""Programs that are stripped in the guest, and whole on the host: probes and stacks by the host's files."""

import contextlib
import pathlib
import re
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import ringside
from disks import MOUNT, disks
from made_images import Archive, dynamic_program, initrd_with
from test_attach_qmp import Machine, begin, end, started
from test_pid import Case, counts

CALLS = 1000
INNER = ('pidPID:a.out:inner:entry { @["inner"] = count(); @in = sum(arg0); }'
         ' pidPID:a.out:inner:return { @left = sum(arg1); } pidPID:a.out:inner:entry /arg0 == 0/ { ustack(3); }'
         ' END { printa("in %@d\\n", @in); printa("left %@d\\n", @left); printa("%s %@d\\n", @); }')
STACK = "a.out`inner a.out`outer a.out`main".replace("a.out", "hidden").split()


class Program:
    """A program as its author has it, as a distribution ships it, and what was split off it."""

    def __init__(self, *options):
        self.whole = dynamic_program("hidden.c", *options)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "program"
            made = pathlib.Path(folder) / "made"
            path.write_bytes(self.whole)
            subprocess.run(["strip", "-o", made, path], check=True)
            self.stripped = made.read_bytes()
            subprocess.run(["objcopy", "--only-keep-debug", path, made], check=True)
            self.debug = made.read_bytes()
            notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
        self.build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]

    @property
    def debug_path(self):
        """In a root, of what was split off it."""
        return f"usr/lib/debug/.build-id/{self.build_id[:2]}/{self.build_id[2:]}.debug"


def root_with(folder, files):
    """A root of a system with these files, from paths in it to bytes."""
    for path, data in files.items():
        place = pathlib.Path(folder) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return str(folder)


class Stripped(Case):
    """A guest with the stripped program."""

    OPTIONS = ()  # the compiler's

    def setUp(self):
        self.program = Program(*self.OPTIONS)
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="ringside-root-")))
        super().setUp()

    def add_to(self, archive):
        archive.file("bin/hidden", self.program.stripped, 0o755)

    def root(self, name, files):
        return root_with(self.folder / name, files)

    def begin_program(self):
        said = self.guest(f"rm -f /tmp/go /tmp/said; hidden {CALLS}")
        return re.search(r"process (\d+)", said)[1]

    def go(self):
        return counts(self.guest("touch /tmp/go; while [ ! -e /tmp/said ]; do sleep 0.1; done; cat /tmp/said"))

    def trace(self, program, options, environment=None):
        return ringside.Run(program, machine=False, options=["--attach", f"qmp:{self.machine.path}", "-q", *options],
                            environment=environment)

    def traced(self, program, options, environment=None):
        """Its outcome, once the program has done all."""
        pid = self.begin_program()
        with self.trace(begin(program.replace("PID", pid)), options, environment) as running:
            started(running)
            said = self.go()
            outcome = end(running)
        self.assertEqual((outcome.status, said["inner"]), (0, CALLS), outcome)
        return outcome

    def check(self, outcome):
        """All calls of the static function, its arguments and values, and who called it."""
        numbers = {name: int(number) for name, number in re.findall(r"^(\w+) (\d+)$", outcome.stdout, re.MULTILINE)}
        total = sum(range(CALLS))
        self.assertEqual(numbers, {"inner": CALLS, "in": total, "left": total + 3 * CALLS}, outcome)
        stack = re.findall(r"^ +(hidden`\w+)(?:\+0x[0-9a-f]+)?$", outcome.stdout, re.MULTILINE)
        self.assertEqual(stack, STACK, outcome)


class Sysroot(Stripped):
    def test_has_the_symbols(self):
        roots = {"whole": {"bin/hidden": self.program.whole},
                 "debug": {self.program.debug_path: self.program.debug}}
        for name, files in roots.items():
            root = self.root(name, files)
            with self.subTest(name):
                outcome = self.traced(INNER, ["--sysroot", root])
                self.assertEqual(outcome.stderr, "", outcome)
                self.check(outcome)
        outcome = self.traced(INNER, ["-v", "-x", f"sysroot={self.root('empty', {'etc/passwd': b''})}",
                                      "-x", f"sysroot={root}"])
        self.check(outcome)
        self.assertRegex(outcome.stderr, "(?m)^ringside: hidden: no functions in the page cache, "
                         rf"\d+ by .symtab of {root}/{self.program.debug_path}$", outcome)

    def test_of_another_build_is_refused(self):
        other = Program("-DOTHER")
        root = self.root("other", {"bin/hidden": other.whole})
        pid = self.begin_program()
        missing = f"pid{pid}:a.out:inner:entry {{}}"
        outcome = self.machine.run(missing, ["-q", "--sysroot", root])
        self.assertEqual((outcome.status, outcome.stdout), (1, ""), outcome)
        self.assertIn("no symbol names a function inner (hidden: no functions in the page cache; "
                      f"{root}/bin/hidden is another version: it has build id {other.build_id}, and the guest's file "
                      f"build id {self.program.build_id};", outcome.stderr)
        # Where nothing depends on it, it is told in a line of its own.
        with self.machine.trace(begin(f'syscall::*access*:entry /pid == {pid} && !told/ {{ told = 1; ustack(); }}'),
                                ["-q", "--sysroot", root]) as running:
            running.read_until(lambda text: "hidden`" in text)
            outcome = end(running)
        self.assertNotIn("`inner", outcome.stdout)
        self.assertEqual(outcome.stderr.count("bin/hidden is another version"), 1, outcome)
        self.assertRegex(outcome.stderr, "(?m)^ringside: .*/bin/hidden is another version: .*: it is not used$")

    def test_that_is_not_there_is_refused(self):
        outcome = self.machine.run("BEGIN {}", ["--sysroot", "/no/such"])
        self.assertEqual((outcome.status, outcome.stderr),
                         (1, "ringside: --sysroot /no/such: No such file or directory\n"))


class SysrootOfOld(Sysroot):
    IMAGE, CPUS = "debian-6.1", 1


@contextlib.contextmanager
def debuginfod(folder, *build_ids):
    """The address of a server of debug information that has found these files in the folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="debuginfod-") as own:
        server = subprocess.Popen(["debuginfod", "-F", "-p", str(port), "-d", f"{own}/database", "-t", "1", folder],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + ringside.TIMEOUT
            for build_id in build_ids:
                while True:
                    try:
                        urllib.request.urlopen(f"{url}/buildid/{build_id}/debuginfo", timeout=10).close()
                        break
                    except (urllib.error.URLError, OSError):
                        assert server.poll() is None and time.monotonic() < deadline, "debuginfod does not serve"
                        time.sleep(0.2)
            yield url
        finally:
            server.terminate()
            server.wait()


class Servers(Stripped):
    def environment(self, url):
        cache = self.enterContext(tempfile.TemporaryDirectory(prefix="ringside-cache-"))
        return {"DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": cache}

    def test_have_the_symbols(self):
        served = self.root("served", {"hidden.debug": self.program.debug})
        with debuginfod(served, self.program.build_id) as url:
            outcome = self.traced(INNER, ["-v"], self.environment(url))
            self.check(outcome)
            self.assertRegex(outcome.stderr, "(?m)^ringside: hidden: no functions in the page cache, "
                             rf"\d+ by .symtab of debuginfod's file of build id {self.program.build_id}$", outcome)
            # A stack alone asks for names, too.
            pid = self.begin_program()
            with self.trace(begin(f"syscall::*access*:entry /pid == {pid} && !told/ {{ told = 1; ustack(); }}"), [],
                            self.environment(url)) as running:
                running.read_until(lambda text: "hidden`main" in text)
                outcome = end(running)
            self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)

    def test_without_the_file_are_told_with_the_error(self):
        other = Program("-DOTHER")
        served = self.root("served", {"hidden.debug": other.debug})
        missing = f"pid{self.begin_program()}:a.out:inner:entry {{}}"
        with debuginfod(served, other.build_id) as url, self.trace(missing, [], self.environment(url)) as running:
            outcome = running.finish()
        self.assertEqual((outcome.status, outcome.stdout), (1, ""), outcome)
        self.assertIn("no symbol names a function inner (hidden: no functions in the page cache; "
                      f"debuginfod has none of build id {self.program.build_id})", outcome.stderr)

    def test_that_fail_are_told_and_tracing_goes_on(self):
        pid = self.begin_program()
        program = (f'pid{pid}:a.out:inner:entry {{}} '
                   f'syscall::*access*:entry /pid == {pid} && !told/ {{ told = 1; ustack(); }}')
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            environment = self.environment(f"http://127.0.0.1:{closed.getsockname()[1]}")
            with self.trace(begin(program), ["-Z"], environment) as running:
                running.read_until(lambda text: re.search(r"hidden`0x[0-9a-f]+\n", text))
                self.go()
                outcome = end(running)
        self.assertEqual((outcome.status, outcome.stderr),
                         (0, "ringside: debuginfod: Connection refused: it is not asked any more; "
                             "names are those of the guest's memory\n"), outcome)


class OnDisk(Case):
    """Files on a disk, of which the guest has no more in memory than its processes have mapped."""

    def setUp(self):
        self.program = Program("-DGAP")
        # It finds functions of the C library later: its first page stays in memory, which tells its build.
        self.probes = dynamic_program("static_probes.c", "-Wl,-z,lazy")
        archive = Archive()
        archive.file("bin/hidden", self.program.stripped, 0o755)
        archive.file("bin/static_probes", self.probes, 0o755)
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="ringside-root-")))
        initrd = folder / "initrd"
        initrd.write_bytes(initrd_with(self.IMAGE, archive))
        self.root = root_with(folder / "root", {"mnt/ext4/hidden": self.program.whole,
                                                "mnt/ext4/static_probes": self.probes})
        options = self.enterContext(disks())
        self.machine = self.enterContext(Machine(self.IMAGE, self.CPUS, options=options, initrd=initrd))
        self.guest(f"{MOUNT} && cp /bin/hidden /bin/static_probes /mnt/ext4 && sync")

    def begin_program(self, name, calls=CALLS):
        said = self.guest(f"rm -f /tmp/go /tmp/said; /mnt/ext4/{name} {calls}; sync; echo 3 > /proc/sys/vm/drop_caches")
        return re.search(r"process (\d+)", said)[1]

    def go(self):
        return counts(self.guest("touch /tmp/go; while [ ! -e /tmp/said ]; do sleep 0.1; done; cat /tmp/said"))

    def test_unwind_tables_come_with_the_second_stack(self):
        self.begin_program("hidden", 1)
        with self.machine.trace(begin('pid*:hidden:inner:entry { printf("<"); ustack(3); printf(">\\n"); }'),
                                ["-q", "--sysroot", self.root]) as running:
            started(running)
            stacks = []
            while len(stacks) < 50 and (not stacks or "`main" not in stacks[-1]):
                self.go()
                text = running.read_until(lambda text, count=len(stacks) + 1: text.count(">\n") == count)
                stacks = re.findall(r"<(.*?)>\n", text, re.DOTALL)
                self.begin_program("hidden", 1)
            outcome = end(running)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertNotIn("`main", stacks[0], "its tables were in memory, which proves nothing")
        self.assertEqual(re.findall(r"(hidden`\w+)", stacks[-1]), STACK, stacks)

    def test_static_probes_have_their_notes(self):
        pid = self.begin_program("static_probes")
        program = f'sample{pid}:::twice-passed {{ @["twice"] = count(); }}'
        self.assertIn("no static probe (USDT) is in the files that are mapped", self.refused(program))
        with self.machine.trace(begin(program), ["-q", "--sysroot", self.root]) as running:
            started(running)
            said = self.go()
            outcome = end(running)
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        self.assertEqual(counts(outcome.stdout), {"twice": said["twice"]})


class OnDiskOfOld(OnDisk):
    IMAGE, CPUS = "debian-6.1", 1


if __name__ == "__main__":
    unittest.main()
