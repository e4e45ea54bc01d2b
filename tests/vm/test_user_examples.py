"""The examples on processes of the guest, each against a program that does a known number of things.

userwork.c does most of them. bash and OpenSSL's libraries are the host's own.
"""

import pathlib
import re
import subprocess
import tempfile
import unittest

import ringside
from made_images import Archive, add_libraries, dynamic_program, initrd_with
from test_attach_qmp import Machine, end

FOLDER = ringside.ROOT / "examples"
SCRIPTS = ("bashreadline", "gethostlatency", "pgqueries", "sslplain", "ucalls", "uflow", "ufunclatency", "uleaks",
           "ulockwaits", "umalloc", "uthreads", "uthrows")
TIMES = 20  # userwork.c
MESSAGES = 10


def libraries_of(*files):
    """The shared libraries that the host's files need, by name."""
    said = subprocess.run(["ldd", *files], check=True, capture_output=True, text=True).stdout
    return {name: pathlib.Path(path) for name, path in re.findall(r"^\s+(\S+) => (/\S+)", said, re.MULTILINE)}


def distribution(text, title=r".*"):
    """The rows of the quantize() below the title: how many values there are from each on."""
    part = re.search(rf"^ *{title} *\n(?: .*`.*\n)*\n* *value .*\n((?: *-?\d+ \|.*\n)*)", text, re.MULTILINE)
    return {int(value): int(count) for value, count in re.findall(r"^ *(-?\d+) \|.* (\d+) *$", part[1], re.MULTILINE)
            if int(count)}


class Guest(unittest.TestCase):
    """One guest for all tests of a class."""

    IMAGE, CPUS = "debian-6.12", 2

    @classmethod
    def setUpClass(cls):
        archive = Archive()
        cls.add_to(archive)
        initrd = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "initrd"
        initrd.write_bytes(initrd_with(cls.IMAGE, archive))
        cls.machine = cls.enterClassContext(Machine(cls.IMAGE, cls.CPUS, initrd=initrd))

    @classmethod
    def add_to(cls, archive):
        """Files for the guest."""
        archive.file("bin/userwork", dynamic_program("userwork.c", "-rdynamic"), 0o755)
        archive.file("etc/hosts", b"127.0.0.1 localhost\n")

    def guest(self, command):
        """The output of a command in the guest."""
        status, said = self.machine.port.run(command)
        self.assertEqual(status, 0, said)
        return said.decode()

    def printed(self, outcome):
        """The output of a script with which nothing went wrong."""
        # Without `quiet`; a pattern may match functions whose pages have no room.
        errors = re.sub(r"^ringside: (script '.*' matched \d+ probes|.* probes are missing, .*)\n", "",
                        outcome.stderr, flags=re.MULTILINE)
        self.assertEqual((outcome.status, errors), (0, ""), outcome)
        return outcome.stdout

    def trace(self, script, work, *arguments, prefix=""):
        """The output of a script about userwork, and userwork's process number."""
        pid = re.search(r"process (\d+)", self.guest(f"rm -f /tmp/go; {prefix} userwork {work}"))[1]
        with self.machine.trace(None, ["-s", FOLDER / f"{script}.d", "-p", pid, *arguments]) as running:
            running.read_until(lambda text: "\n" in text)
            self.guest("touch /tmp/go")
            return self.printed(running.finish()), pid

    def trace_all(self, script, prepare, command):
        """The output of a script without -p, and that of a command which the guest runs meanwhile."""
        self.guest(f"rm -f /tmp/go; {prepare}")
        with self.machine.trace(None, ["-s", FOLDER / f"{script}.d"]) as running:
            running.read_until(lambda text: "\n" in text)
            said = self.guest(command)
            return self.printed(end(running)), said

    def check_leaks(self):
        """The blocks that userwork does not free."""
        text, _ = self.trace("uleaks", "allocations")
        found = {name: (int(size), int(blocks)) for size, blocks, name in
                 re.findall(r"^ +(-?\d+) +(-?\d+)  userwork`(\w+)\+0x[0-9a-f]+$", text, re.MULTILINE)}
        self.assertEqual(found, {"keeps": (1000 * TIMES, TIMES), "takes": (0, 0),
                                 "clears": ((700 + 30) * TIMES, 2 * TIMES),
                                 "resizes": ((500 + 40) * TIMES, 2 * TIMES)}, text)


class StaticProbes(Guest):
    """Scripts on static probes."""

    @classmethod
    def add_to(cls, archive):
        archive.file("bin/postgres", dynamic_program("queries.c"), 0o755)
        archive.file("bin/throws", dynamic_program("throws.cc"), 0o755)
        add_libraries(archive, "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1")

    def test_pgqueries(self):
        text, _ = self.trace_all("pgqueries", "rm -f /tmp/done; postgres 5",
                                 "touch /tmp/go; while [ ! -e /tmp/done ]; do sleep 0.1; done")
        found = re.findall(r"^ *(\d+) +\d+ (select .*)$", text, re.MULTILINE)
        self.assertEqual(sorted(query for _, query in found),
                         5 * ["select 1"] + 5 * ["select sum(n) from numbers"], text)
        for pid in {pid for pid, _ in found}:
            self.assertEqual(sum(distribution(text, f"PID {pid}, us").values()), 2, text)

    def test_uthrows(self):
        pid = re.search(r"process (\d+)", self.guest("rm -f /tmp/go /tmp/said; throws 100"))[1]
        with self.machine.trace(None, ["-s", FOLDER / "uthrows.d", "-p", pid]) as running:
            running.read_until(lambda text: "\n" in text)
            self.guest("touch /tmp/go; while [ ! -e /tmp/said ]; do sleep 0.1; done")
            text = self.printed(end(running))
        self.assertRegex(text, r"\n *throws`fail\(long\)\+0x[0-9a-f]+\n *throws`main[+.]")
        self.assertEqual(dict(re.findall(r"^(throw|catch|rethrow) +(\d+)$", text, re.MULTILINE)),
                         {"throw": "100", "catch": "100"})


class Processes(Guest):
    """Scripts with -p."""

    def test_ucalls(self):
        text, _ = self.trace("ucalls", "calls", "a.out", "*")
        found = {name: int(count) for name, count in re.findall(r"^userwork +(\w+) +(\d+)$", text, re.MULTILINE)}
        self.assertEqual([found.get(name) for name in ("inner", "outer", "naps", "calls")],
                         [2 * TIMES, TIMES, TIMES, 1], text)

    def test_ucalls_of_a_library(self):
        text, _ = self.trace("ucalls", "calls", "libc.so.6", "usle*")
        self.assertRegex(text, rf"\nlibc\.so\.6 +usleep +{TIMES}\n")

    def test_ufunclatency(self):
        text, _ = self.trace("ufunclatency", "calls", "a.out", "[in]*s")
        found = distribution(text, "naps")
        self.assertEqual(sum(found.values()), TIMES, text)
        self.assertGreaterEqual(min(found), 1 << 23, text)  # 10 ms

    def test_uflow(self):
        # The indentation is by CPU, so it stays on one.
        text, pid = self.trace("uflow", "calls", "a.out", "*er", prefix="taskset 1")
        found = re.findall(rf"^  0 ( +)(-> |<- )(\w+) +{pid} +\d+$", text, re.MULTILINE)
        self.assertEqual(["".join(words) for words in found],
                         [" -> outer", "   -> inner", "   <- inner", " <- outer", " -> inner", " <- inner"] * TIMES)

    def test_umalloc(self):
        text, _ = self.trace("umalloc", "allocations")
        self.assertEqual(distribution(text, "malloc"),
                         {512: 2 * TIMES, 2048: TIMES, 256: TIMES, 128: TIMES}, text)
        self.assertEqual(distribution(text, "calloc"), {512: 2 * TIMES, 16: TIMES}, text)
        self.assertEqual(distribution(text, "realloc"), {32: TIMES, 65536: TIMES}, text)
        found = {}
        for name, number in re.findall(r"^ +libc\.so\.6`.*\n +userwork`(\w+)\+0x.*\n(?: .*`.*\n)* +(\d+)$", text,
                                       re.MULTILINE):
            found[name] = found.get(name, 0) + int(number)
        self.assertEqual(found, {"keeps": 1000 * TIMES, "takes": (3000 + 600 + 200) * TIMES,
                                 "clears": (700 + 900 + 30) * TIMES, "resizes": (500 + 40 + 100000) * TIMES}, text)

    def test_uleaks(self):
        self.check_leaks()

    def test_ulockwaits(self):
        text, _ = self.trace("ulockwaits", "locks")
        self.assertEqual(len(re.findall(r"`waits\+0x", text)), 1, text)
        found = distribution(text)
        self.assertEqual(sum(found.values()), TIMES, text)
        self.assertGreaterEqual(min(found), 1 << 23, text)


class Older(Guest):
    """One of them on another kernel."""

    IMAGE, CPUS = "debian-6.1", 1

    def test_uleaks(self):
        self.check_leaks()


class Everything(Guest):
    """Scripts about all processes."""

    @classmethod
    def add_to(cls, archive):
        super().add_to(archive)
        tls = dynamic_program("tls.c", "-Wl,--no-as-needed", "-l:libssl.so.3", "-l:libcrypto.so.3")
        archive.file("bin/tls", tls, 0o755)
        gnutls = dynamic_program("gnutls.c", "-Wl,--no-as-needed", "-l:libgnutls.so.30")
        archive.file("bin/gnutls", gnutls, 0o755)
        archive.file("bin/bash", pathlib.Path("/bin/bash").read_bytes(), 0o755)
        with tempfile.TemporaryDirectory() as folder:
            programs = [pathlib.Path(folder) / "tls", pathlib.Path(folder) / "gnutls"]
            for path, program in zip(programs, (tls, gnutls)):
                path.write_bytes(program)
            libraries = libraries_of("/bin/bash", *programs)
        for name, path in libraries.items():
            if name != "libc.so.6":  # the image has it
                archive.file(f"lib/{name}", path.read_bytes(), 0o755)

    def test_uthreads(self):
        text, _ = self.trace_all("uthreads", "userwork threads; userwork threads",
                                 "touch /tmp/go; while pidof userwork > /dev/null; do usleep 100000; done")
        found = re.findall(r"^userwork +\d+ userwork`(\w+) +(\d+)$", text, re.MULTILINE)
        sleeps = TIMES // 4
        self.assertEqual(sorted(found), [("runs", str(TIMES - sleeps))] * 2 + [("sleeps", str(sleeps))] * 2, text)

    def test_gethostlatency(self):
        text, _ = self.trace_all("gethostlatency", "userwork names",
                                 "touch /tmp/go; while pidof userwork > /dev/null; do usleep 100000; done")
        found = re.findall(r"^ *\d+ userwork +\d+ (\w+) +(\S+)$", text, re.MULTILINE)
        self.assertEqual(found, [("found", "localhost"), ("none", "nobody.invalid"), ("found", "-")] * TIMES
                         + [("found", "localhost")], text)

    def plain_text(self, program, library):
        """The lines of sslplain about two runs of a program, and the addresses of its connections."""
        text, said = self.trace_all(
            "sslplain", f"({program} {MESSAGES} > /tmp/first) & "
            f"until grep -q {library} /proc/$(pidof {program})/maps 2> /dev/null; do usleep 100000; done",
            f"touch /tmp/go; while pidof {program} > /dev/null; do usleep 100000; done; cat /tmp/first; "
            f"{program} {MESSAGES}")
        ends = re.findall(r"^client (\w+) server (\w+)$", said, re.MULTILINE)
        self.assertEqual(len(ends), 2, said)
        return re.findall(rf"^ *\d+ {program} +(\w+) +(\w+) +(\d+) (.*)$", text, re.MULTILINE), ends

    def test_sslplain(self):
        found, ends = self.plain_text("tls", "libssl")
        wanted = []
        for client, server in ends:
            for n in range(MESSAGES):
                message = rf"message {n}\n\0"
                wanted += [(client, "SSL_write", "10", message), (server, "SSL_read", "10", message)]
            wanted += [(server, "SSL_write_ex", "6", r"answer\0"), (client, "SSL_read_ex", "6", r"answer\0")]
        self.assertEqual(found, wanted)

    def test_sslplain_of_gnutls(self):
        found, ends = self.plain_text("gnutls", "libgnutls")
        self.assertEqual(found, [(end, call, "10", rf"message {n}\n\0") for client, server in ends
                                 for n in range(MESSAGES)
                                 for end, call in ((client, "gnutls_record_send2"), (server, "gnutls_record_recv"))])

    def test_bashreadline(self):
        lines = ["echo one", "echo two  words", "", "exit 0"]
        typed = "\\n".join(lines)
        text, _ = self.trace_all(
            "bashreadline", "(while [ ! -e /tmp/go ]; do usleep 100000; done; cat /tmp/lines) | "
            "bash --norc -i > /tmp/said 2>&1 & until pidof bash > /dev/null; do usleep 100000; done",
            f"printf '{typed}\\n' > /tmp/lines; touch /tmp/go; while pidof bash > /dev/null; do usleep 100000; done")
        self.assertEqual(re.findall(r"^\d{4} \w{3} +\d+ [\d:]{8} +\d+ +0 (.*)$", text, re.MULTILINE), lines, text)


if __name__ == "__main__":
    unittest.main()
