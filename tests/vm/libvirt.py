"""A libvirtd of the test's own: Debian's program, without systemd, or any folder but one.

Libvirt is one without root's rights that serves its user's session. It would serve the whole system if it
saw that it is root's, so then it runs in a user namespace where it is not. SystemLibvirt serves the whole
system, with the folders and the user of Debian's package in a mount namespace. Used by test_attach_libvirt.py. Run as a program, it
starts a command as the parent of all that come of it: libvirt waits for a QEMU to be reaped, which the
process 1 of a container may do late or never.
"""

import contextlib
import ctypes
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid

import guest

PROGRAM = "/usr/sbin/libvirtd"
LIBC = ctypes.CDLL(None)
DOMAIN = """<domain type='qemu'><name>{name}</name><memory unit='MiB'>{memory}</memory>
 {backing}<vcpu current='{cpus}'>{most_cpus}</vcpu>
 <os><type arch='x86_64' machine='pc'>hvm</type><kernel>{files}/vmlinuz</kernel>
  <initrd>{files}/initrd</initrd><cmdline>{append}</cmdline></os>
 <features><acpi/><apic/></features>
 <cpu mode='maximum'><feature policy='disable' name='cx16'/></cpu>
 <devices><emulator>{qemu}</emulator>
  <serial type='file'><source path='{folder}/console'/><target port='0'/></serial>
  <serial type='unix'><source mode='connect' path='{folder}/control'/><target port='1'/></serial>
  <serial type='unix'><source mode='connect' path='{folder}/output'/><target port='2'/></serial>
  {disks}<memballoon model='none'/></devices></domain>
"""
# QEMUs are another user's, as Debian's package has it, whose id this is.
USER = "libvirt-qemu"
USER_ID = 64055
SYSTEM_CONFIGURATION = """stdio_handler = "file"
cgroup_controllers = []
security_driver = "none"
"""
SYSTEM_FOLDERS = ("run", "var/lib", "var/log", "var/cache", "etc")
DISK = """<disk type='file' device='disk'><driver name='qemu' type='{format}'/><source file='{path}'/>
 <target dev='{name}' bus='virtio'/></disk>"""
SHARED = "<memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>"


def missing():
    """Why there is no libvirt to test with; empty when there is."""
    if not os.access(PROGRAM, os.X_OK) or not shutil.which("virsh"):
        return "no libvirtd or no virsh: tests/setup installs them"
    if os.geteuid() == 0 and subprocess.run([*unprivileged(), "true"], check=False,
                                            capture_output=True).returncode:
        return "root may not make user namespaces here, and libvirtd would serve the whole system"
    return ""


def unprivileged():
    """The words that a command starts with to see itself as another than root."""
    return ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []


def missing_for_system():
    """The same of one that serves the whole system."""
    if reason := missing():
        return reason
    if os.geteuid() != 0:
        return "only root can start a libvirtd that serves the whole system"
    if subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode:
        return "root may not make mount namespaces here"
    return ""


class Domain:
    """A running domain and its command port."""

    def __init__(self, libvirt, name, image, cpus=1, most_cpus=None, memory=512, backing="", disks=(),
                 append=""):
        """`disks`: each as DISK has them."""
        self.libvirt, self.name = libvirt, name
        self.folder = libvirt.folder / name
        self.folder.mkdir()
        self._listeners = {}
        for end in ("control", "output"):
            self._listeners[end] = socket.socket(socket.AF_UNIX)
            self._listeners[end].bind(str(self.folder / end))
            self._listeners[end].listen(1)
            libvirt.hand_over(self.folder / end)
        libvirt.hand_over(self.folder)
        qemu = shutil.which(os.environ.get("RINGSIDE_QEMU", "qemu-system-x86_64"))
        (self.folder / "xml").write_text(DOMAIN.format(
            name=name, image=image, cpus=cpus, most_cpus=most_cpus or cpus, memory=memory,
            backing=backing, qemu=qemu, disks="".join(disks), append=f"{guest.APPEND} {append}", folder=self.folder, files=libvirt.files(image)))
        self.port = None

    def connect(self):
        """Takes the command port of the QEMU that comes up."""
        if self.port:
            self.port.close()
        sockets = {}
        for end, listener in self._listeners.items():
            listener.settimeout(guest.TIMEOUT)
            sockets[end] = listener.accept()[0]
        self.port = guest.CommandPort(**sockets, explain=self._explain)

    def start(self):
        """Creates it and waits until it has booted."""
        self.libvirt.virsh("create", self.folder / "xml")
        self.connect()
        self.port.expect("ready")
        return self

    def close(self):
        """Ends it."""
        self.libvirt.virsh("destroy", self.name, check=False)
        for listener in self._listeners.values():
            listener.close()
        if self.port:
            self.port.close()

    def state(self):
        """running, paused, ..."""
        return self.libvirt.virsh("domstate", self.name).strip()

    def _explain(self):
        console = self.folder / "console"
        return console.read_bytes()[-16000:].decode(errors="replace") if console.exists() else ""


class Libvirt:
    """The daemon; a context manager."""

    def __init__(self):
        self._stack = contextlib.ExitStack()
        self.folder = pathlib.Path(self._stack.enter_context(
            tempfile.TemporaryDirectory(prefix="ringside-lv-", ignore_cleanup_errors=True)))
        self._environment = dict(os.environ, HOME=str(self.folder), PYTHONDONTWRITEBYTECODE="1")
        for kind in ("RUNTIME_DIR", "CONFIG_HOME", "CACHE_HOME", "DATA_HOME", "STATE_HOME"):
            folder = self.folder / kind[0].lower()
            folder.mkdir(exist_ok=True)
            self._environment[f"XDG_{kind}"] = str(folder)
        # No two hosts have one, which a domain that moves from one to the other is refused for.
        self._configuration("c/libvirt").write_text(f'host_uuid = "{uuid.uuid4()}"\n')
        self.socket = self.folder / "r/libvirt/libvirt-sock"
        self.uri = f"qemu:///session?socket={self.socket}"

    def _configuration(self, folder):
        (self.folder / folder).mkdir(parents=True, exist_ok=True)
        return self.folder / folder / "libvirtd.conf"

    def command(self):
        """The words that start the daemon."""
        return [sys.executable, __file__, *unprivileged(), PROGRAM]

    def hand_over(self, path):
        """Makes a path one that the daemon's QEMUs may use."""

    def files(self, image):
        """Where its kernel is."""
        return guest.images_folder().resolve() / image

    def __enter__(self):
        log = open(self.folder / "log", "wb")
        self._process = process = subprocess.Popen(
            self.command(), env=self._environment,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=guest.end_with_parent)
        log.close()

        def end():
            process.terminate()
            process.wait()

        self._stack.callback(end)
        self._await_daemon()
        return self

    def end_daemon(self):
        """Its domains run on, as when its package is upgraded."""
        self._process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + guest.TIMEOUT
        while self.virsh("list", check=False) is not None:
            if time.monotonic() > deadline:
                raise AssertionError("libvirtd does not end")
            time.sleep(0.1)

    def start_daemon(self):
        """The next one, which finds its domains."""
        self._process.send_signal(signal.SIGUSR2)
        self._await_daemon()

    def _await_daemon(self):
        deadline = time.monotonic() + guest.TIMEOUT
        while self.virsh("list", check=False) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self.folder / "log").read_text(errors="replace")
                self._stack.close()
                raise AssertionError(f"libvirtd does not come up: {said}")
            time.sleep(0.1)

    def __exit__(self, *unused):
        self._stack.close()

    def virsh(self, *words, check=True):
        """Runs virsh; returns what it prints, with check=False None when it fails."""
        done = subprocess.run(["virsh", "-q", "-c", self.uri, *map(str, words)], text=True,
                              capture_output=True, check=False, env=self._environment,
                              timeout=guest.TIMEOUT)
        if done.returncode == 0:
            return done.stdout
        if check:
            raise AssertionError(f"virsh {words}: {done.stderr}")
        return None

    @contextlib.contextmanager
    def stops(self, name):
        """Gives a function that waits for the next stop of a domain's QEMU, counted from now on."""
        words = ["virsh", "-q", "-c", self.uri, "qemu-monitor-event", name, "--event", "STOP", "--loop"]

        def wait(seconds=guest.TIMEOUT):
            ready = select.select([process.stdout], [], [], seconds)[0]
            return bool(ready) and bool(process.stdout.readline())

        with subprocess.Popen(["stdbuf", "-oL", *words], stdout=subprocess.PIPE, bufsize=0,
                              env=self._environment, preexec_fn=guest.end_with_parent) as process:
            try:
                # It does not say when it has begun to listen.
                while not wait(1):
                    self.virsh("suspend", name)
                    self.virsh("resume", name)
                while wait(1):
                    pass
                yield wait
            finally:
                process.kill()

    def migrate(self, domain, other):
        """Moves a domain to another daemon while it runs; its command port is to be connected anew."""
        self.virsh("migrate", "--live", domain.name, f"qemu+unix:///session?socket={other.socket}",
                   "--migrateuri", f"unix://{other.folder}/moving")
        domain.libvirt = other

    def domain(self, name, image, **settings):
        """A domain that has booted; it ends with the daemon."""
        domain = Domain(self, name, image, **settings)
        self._stack.callback(domain.close)
        return domain.start()


class SystemLibvirt(Libvirt):
    """The same as root's, for qemu:///system. It reads the configuration of Debian's package and knows that
    package's user, which need not be there outside of its namespace.
    """

    def __init__(self):
        super().__init__()
        self.folder.chmod(0o755)
        self.socket = self.folder / "run/libvirt-sock"
        self.uri = f"qemu:///system?socket={self.socket}"

    def command(self):
        mounts = []
        for each in SYSTEM_FOLDERS:
            mine, theirs = self.folder / each, f"/{each}/libvirt"
            mine.mkdir(parents=True)
            mounts.append(f"mkdir -p {theirs}; mount --bind {mine} {theirs}")
        (self.folder / "etc/qemu.conf").write_text(SYSTEM_CONFIGURATION)
        for each, line in (("passwd", f"{USER}:x:{USER_ID}:{USER_ID}::/nonexistent:/usr/sbin/nologin\n"),
                           ("group", f"{USER}:x:{USER_ID}:\n")):
            known = pathlib.Path("/etc", each).read_text()
            (self.folder / each).write_text(known if f"{USER}:" in known else known + line)
            mounts.append(f"mount --bind {self.folder / each} /etc/{each}")
        # It is the parent of all that come of it there, too.
        script = "\n".join(["set -e", *mounts, f"exec {sys.executable} -B {__file__} {PROGRAM}"])
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]

    def owner(self, name):
        """The user whose process a domain's QEMU is."""
        pid = (self.folder / f"run/qemu/{name}.pid").read_text().strip()
        return os.stat(f"/proc/{pid}").st_uid

    def hand_over(self, path):
        os.chown(path, USER_ID, USER_ID)

    def files(self, image):
        # libvirt gives what a domain uses to its QEMU's user.
        copies = self.folder / "images" / image
        copies.mkdir(parents=True, exist_ok=True)
        for name in ("vmlinuz", "initrd"):
            shutil.copy(guest.images_folder() / image / name, copies / name)
        return copies


def children():
    """This process's children's pids."""
    return [int(pid) for pid in
            pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


class Reaper:
    """Runs a command, reaps all that comes of it, and ends all of that with it. SIGUSR1 ends the command
    alone, and SIGUSR2 runs it again."""

    def __init__(self, command):
        PR_SET_CHILD_SUBREAPER = 36
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._command = command
        self._wanted = True  # the command is to run
        self._over = False
        for number, obey in ((signal.SIGTERM, self._end), (signal.SIGUSR1, self._stop),
                             (signal.SIGUSR2, self._start)):
            signal.signal(number, obey)
        self._start()

    def _start(self, *unused):
        self._wanted = True
        self._process = subprocess.Popen(self._command)

    def _stop(self, *unused):
        self._wanted = False
        os.kill(self._process.pid, signal.SIGTERM)

    def _end(self, *unused):
        self._over = True
        if self._wanted:
            os.kill(self._process.pid, signal.SIGTERM)

    def run(self):
        """Until the command ends by itself, or at SIGTERM."""
        while not self._over or self._wanted:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == self._process.pid and self._wanted:
                    break
            except ChildProcessError:
                pass
            time.sleep(0.02)
        end_children()


def end_children():
    """All that is left."""
    while left := children():
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(-1, 0)


if __name__ == "__main__":
    Reaper(sys.argv[1:]).run()
