"""Guests that are made to hang, and what `ringside why` says of them."""

import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import tempfile
import time

import guest
import ringside
from made_images import Archive, initrd_with, static_program
from qmp import Qmp

CPUS = 2
DISK = "/machine/peripheral/disk0/virtio-backend"
MOUNT = ("for m in $(cat /modules/virtio); do insmod /modules/$m 2>/dev/null; done;"
         " mkdir /tmp/m && until mount -t ext4 /dev/vda /tmp/m; do sleep 1; done")


class Debugger:
    """QEMU's gdbstub, as far as it is needed to change code that has run."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(guest.TIMEOUT)
        self._socket.connect(str(path))

    def __call__(self, packet):
        self.send(packet)
        answer = b""
        while not re.search(rb"\$([^#]*)#..$", answer):
            answer += self._socket.recv(4096)
        self._socket.sendall(b"+")
        return answer

    def ask_why_stopped(self):
        """Takes the answer, and the news of the stop that coming here made, which is T02."""
        self.send(b"?")
        answer = b""
        while not re.search(rb"\$T05[^#]*#..$", answer):
            answer += self._socket.recv(4096)
        self._socket.sendall(b"+")

    def take_ack(self):
        """Takes the plus sign for what was sent last."""
        if (got := self._socket.recv(1)) != b"+":
            raise AssertionError(f"the gdbstub says {got}")

    def is_told(self):
        """Whether something has come that was not asked for."""
        return bool(select.select([self._socket], [], [], 1)[0])

    def send(self, packet):
        self._socket.sendall(b"$%s#%02x" % (packet, sum(packet) & 255))

    def close(self):
        self._socket.close()


class Patient:
    """A guest that will hang; a context manager."""

    def __init__(self, image, append="", cpus=CPUS):
        self._folder = tempfile.TemporaryDirectory(prefix="ringside-why-")
        folder = pathlib.Path(self._folder.name)
        self.core, self.ram = folder / "core", folder / "ram"
        disk = folder / "disk"
        disk.touch()
        subprocess.run(["truncate", "-s", "64M", disk], check=True)
        subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-F", disk], check=True)
        archive = Archive()
        archive.file("bin/hang", static_program("hang.c", "-O1"), 0o755)
        initrd = folder / "initrd"
        initrd.write_bytes(initrd_with(image, archive))
        self._paths = {name: folder / name for name in ("qmp", "second", "third", "gdb")}
        options = ["-qmp", f"unix:{folder}/qmp,server=on,wait=off",
                   "-qmp", f"unix:{folder}/second,server=on,wait=off",
                   "-qmp", f"unix:{folder}/third,server=on,wait=off",
                   "-object", f"memory-backend-file,id=ram,size=256M,mem-path={self.ram},share=on",
                   "-machine", "pc,memory-backend=ram",
                   "-drive", f"file={disk},if=none,id=d0,format=raw,throttling.bps-total=1000000000000",
                   "-device", "virtio-blk-pci,drive=d0,id=disk0"]
        self._guest = guest.Guest(image, cpus=cpus, memory=256, options=options, initrd=initrd,
                                  append=append)

    def __enter__(self):
        self.port = self._guest.__enter__()
        self.monitor = Qmp(self._paths["qmp"])
        return self

    def __exit__(self, *unused):
        self.monitor.close()
        self._guest.__exit__(*unused)
        self._folder.cleanup()

    def do(self, command):
        """Runs a command that must succeed."""
        status, output = self.port.run(command)
        if status != 0:
            raise AssertionError(f"{command}: status {status}: {output}")
        return output.decode()

    def hang(self, command):
        """Starts a command that will not end."""
        self.port.start(command)
        self.port.send("go")

    def why_hung(self, count):
        """The report once so many tasks hang. A QEMU that saves its guest first lets it have what its
        disks hold back, so this is waited for in the RAM of the guest that runs."""
        deadline = time.monotonic() + guest.TIMEOUT
        while not hung(count)(self.why_by_memory()[1]) and time.monotonic() < deadline:
            time.sleep(0.5)
        return self.why()

    def stall_disk(self):
        """From now on the disk takes requests and does not answer them."""
        self.monitor.ask("block_set_io_throttle", id=DISK, bps=1, bps_rd=0, bps_wr=0, iops=0, iops_rd=0,
                     iops_wr=0)

    def lose_a_cpu(self, code=b"faebfe"):
        """Makes sethostname() turn interrupts off (cli) and jump to itself, or what the code says."""
        address, = self.addresses("__x64_sys_sethostname")
        debugger = self.open_debugger()
        debugger(b"M%x,%x:%s" % (address, len(code) // 2, code))
        debugger.send(b"c")
        debugger.close()
        self.monitor.human("gdbserver none")

    def addresses(self, *symbols):
        """Where the kernel has them."""
        lines = self.do(f"grep -E ' ({'|'.join(symbols)})$' /proc/kallsyms").splitlines()
        found = {name: int(address, 16) for address, _, name in map(str.split, lines)}
        return [found[symbol] for symbol in symbols]

    def open_debugger(self):
        """A debugger of the owner's, which has stopped the guest."""
        self.monitor.human(f"gdbserver unix:{self._paths['gdb']},server=on,wait=off")
        debugger = Debugger(self._paths["gdb"])
        debugger.ask_why_stopped()
        return debugger

    def target(self, name):
        """The target at one of the monitors' sockets."""
        return f"qmp:{self._paths[name]}"

    def pid(self):
        """The QEMU's process."""
        return self._guest.pid()

    def status(self):
        """running, paused, ..."""
        return self.monitor.ask("query-status")["status"]

    def why(self):
        """The report of the guest as it is now: (text, tree)."""
        self.core.unlink(missing_ok=True)
        self.monitor.ask("dump-guest-memory", paging=False, protocol=f"file:{self.core}")
        return why("--core", self.core)

    def why_by_memory(self):
        """The same by the guest's RAM alone, while it runs."""
        return why("--core", self.ram)

    def why_alive(self):
        """The same of the machine that runs, by its monitor."""
        return why(self.target("second"))

    def why_once(self, ready):
        """The report once ready(tree) is true of it, or the last one: a loaded machine is slow."""
        deadline = time.monotonic() + guest.TIMEOUT
        while not ready((report := self.why())[1]) and time.monotonic() < deadline:
            time.sleep(0.5)
        return report


def why(*target):
    """Runs `why` on a machine or a file; returns what it says: (text, tree)."""
    outputs = []
    for form in ([], ["-O", "json"]):
        done = subprocess.run([ringside.binary(), "why", *target, *form], text=True,
                              capture_output=True, timeout=ringside.TIMEOUT, check=False)
        if done.returncode != 0 or done.stderr:
            raise AssertionError(f"status {done.returncode}: {done.stderr}")
        outputs.append(done.stdout)
    return outputs[0], json.loads(outputs[1])["why"]


def why_stopped(target, pid):
    """The same of a machine whose QEMU, process `pid`, is under SIGSTOP meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    try:
        return why(target)
    finally:
        os.kill(pid, signal.SIGCONT)


def is_first(kind):
    """Whether a report's likeliest cause is of that kind."""
    return lambda tree: tree["causes"][0]["kind"] == kind


def hung(count):
    """Whether so many tasks have waited for more than a second."""
    return lambda tree: sum(task.get("since_ns", 0) > 1e9 for task in tree["waiting"]) >= count


def functions(task):
    """The functions on a task's stack, innermost first."""
    return [frame["symbol"].split("+")[0] for frame in task.get("stack", [])]
