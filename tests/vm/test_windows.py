"""No function that a CPU runs before it has the kernel's interrupt table can be probed.

The truth is the processor's own: from the first instruction of a CPU that comes up or wakes up, QEMU
is asked for every single step, until the CPU has the interrupt table that the others have. No
function that it was in may have a probe. On 6.1, 6.12 and Debian unstable's kernel.
"""

import bisect
import gzip
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import unittest
from unittest import mock

import guest
import ringside

FIRST = "secondary_startup_64"
RIP = 16 * 8  # where the `g` packet has it, after 16 registers
CPU1 = "/sys/devices/system/cpu/cpu1/online"
HOTPLUG = f"echo 0 >{CPU1}; echo 1 >{CPU1}; cat {CPU1}"
SLEEP = f"echo +20 >/sys/class/rtc/rtc0/wakealarm; echo mem >/sys/power/state; cat {CPU1}"
# Enough for verify_cpu and for clearing a TSS byte by byte.
MAX_STEPS = 400_000


class Gdb:
    """The few packets of QEMU's gdbstub that stepping needs."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(guest.TIMEOUT)
        self._socket.connect(str(path))
        self._read = b""
        # The stop that the connection causes is told at some time, asked or not.
        self.send("qAttached")
        while self.receive().startswith("T"):
            pass

    def close(self):
        """Hangs up."""
        self._socket.close()

    def send(self, text):
        """Sends one packet."""
        data = text.encode()
        self._socket.sendall(b"$%s#%02x" % (data, sum(data) % 256))

    def receive(self):
        """The next packet."""
        while not (match := re.search(rb"\$([^#]*)#..", self._read)):
            data = self._socket.recv(65536)
            if not data:
                raise guest.GuestError("the gdbstub hung up")
            self._read += data
        self._read = self._read[match.end():]
        self._socket.sendall(b"+")
        return match[1].decode()

    def ask(self, text):
        """The answer to one packet."""
        self.send(text)
        return self.receive()

    def monitor(self, command):
        """The answer of QEMU's monitor to a command."""
        self.send("qRcmd," + command.encode().hex())
        said = b""
        while (answer := self.receive()) != "OK":
            said += bytes.fromhex(answer.removeprefix("O"))
        return said.decode()

    def stopped_thread(self):
        """Waits until a CPU stops; its number as the gdbstub writes it."""
        return re.search(r"thread:([^;]+);", self.receive())[1]

    def rip(self, thread):
        """Where a CPU stands."""
        self.ask(f"Hg{thread}")
        return int.from_bytes(bytes.fromhex(self.ask("g"))[RIP:RIP + 8], "little")


class Symbols:
    """The kernel's text by address, from its own listing."""

    def __init__(self, listing):
        found = [line.split() for line in listing.splitlines()]
        pairs = sorted((int(words[0], 16), words[2]) for words in found
                       if len(words) == 3 and words[1] in "tTwW"
                       and not words[2].startswith("__pfx_"))
        self._starts = [start for start, _ in pairs]
        self._names = {}
        for start, name in pairs:
            self._names.setdefault(start, set()).add(name)

    def address(self, name):
        """Where a function starts."""
        return next(start for start, names in self._names.items() if name in names)

    def at(self, address):
        """All names of the function that covers an address."""
        index = bisect.bisect_right(self._starts, address) - 1
        return self._names[self._starts[index]] if index >= 0 else set()


def idt_of(registers, cpu):
    """The base of a CPU's interrupt table in what `info registers -a` says."""
    part = registers.split(f"CPU#{cpu}")[1]
    return re.search(r"IDT= +([0-9a-f]+)", part)[1]


def walk_to_table(gdb, thread, symbols, serving):
    """Steps a CPU until it has the serving table; returns the names that it was in."""
    cpu = int(thread.split(".")[-1], 16) - 1
    seen, last = set(), None
    for _ in range(MAX_STEPS):
        names = symbols.at(gdb.rip(thread))
        if names is not last:
            if idt_of(gdb.monitor("info registers -a"), cpu) == serving:
                return seen
            seen |= names
            last = names
        gdb.send(f"vCont;s:{thread}")
        gdb.receive()
    raise AssertionError(f"CPU {cpu} never got its table: {sorted(seen)}")


def watch(image, command, windows):
    """The functions that CPUs are in before they have their table, while a guest runs a command."""
    with tempfile.TemporaryDirectory(prefix="ringside-test-") as folder:
        path = pathlib.Path(folder) / "gdb"
        options = ["-chardev", f"socket,path={path},server=on,wait=off,id=gdb",
                   "-gdb", "chardev:gdb"]
        with guest.Guest(image, cpus=2, options=options) as port:
            symbols = Symbols(gzip.decompress(port.run("gzip -c /proc/kallsyms")[1]).decode())
            gdb = Gdb(path)
            try:
                serving = idt_of(gdb.monitor("info registers -a"), 0)
                gdb.ask(f"Z1,{symbols.address(FIRST):x},1")
                gdb.send("vCont;c")
                port.start(command)
                port.send("go")
                seen = [walk_and_go_on(gdb, symbols, serving) for _ in range(windows)]
                status, output = port.finish()
            finally:
                gdb.close()
    return seen, status, output


def walk_and_go_on(gdb, symbols, serving):
    """One window, from its first instruction to its end."""
    seen = walk_to_table(gdb, gdb.stopped_thread(), symbols, serving)
    gdb.send("vCont;c")
    return seen


class Windows(unittest.TestCase):
    def check(self, image, environment=None):
        listing = ringside.run("fbt:vmlinux::", image=image, cpus=2, options=["-l"],
                               environment=environment)
        probed = {line.split()[3] for line in listing.stdout.splitlines()[1:]
                  if line.split()[1:2] == ["fbt"]}
        self.assertGreater(len(probed), 10_000, listing.stderr)
        for command, windows in ((HOTPLUG, 1), (SLEEP, 2)):
            with self.subTest(image=image, command=command):
                seen, status, output = watch(image, command, windows)

                self.assertEqual((status, output.split()), (0, [b"1"]))
                for names in seen:
                    self.assertIn(FIRST, names)
                    self.assertGreater(len(names), 5, names)
                    for name in names & probed:
                        self.check_other_of_that_name(name, image, environment)

    def check_other_of_that_name(self, name, image, environment):
        """Several functions have it: the one that the CPU was in is refused, another one is probed."""
        listing = ringside.run(f"fbt:vmlinux:{name}:entry", image=image, cpus=2, options=["-l", "-v"],
                               environment=environment)
        self.assertRegex(listing.stdout, f"fbt:vmlinux:{re.escape(name)}:entry: no probe can stand at .*: "
                                         "it runs before a CPU that comes up can take a breakpoint")

    def test_nothing_is_probed_before_a_cpu_has_its_table(self):
        for image in ringside.IMAGES:
            self.check(image)

    def test_nor_in_debian_unstables_kernel(self):
        folder = {"RINGSIDE_IMAGES": guest.suite_image("sid")}
        with mock.patch.dict(os.environ, folder):
            self.check("debian-sid", folder)
            live = subprocess.run(
                [ringside.binary().parent / "tests/live/live_kernel_test",
                 "--gtest_filter=LiveKernel/debian_sid.NoJumpLeadsToAnEntrySite"],
                text=True, check=False, capture_output=True, timeout=ringside.TIMEOUT)
            self.assertEqual(live.returncode, 0, live.stdout)
            self.assertIn("[  PASSED  ] 1 test.", live.stdout)


if __name__ == "__main__":
    unittest.main()
