"""`ringside ps`, `dmesg`, `modules`, `mounts`, `lsof`, `netstat` and `top`, against what the guest says itself.

listed.c makes sockets, files, threads and names in each guest; the truth is the guest's /proc and its
own commands. The guests run meanwhile, and nothing is placed in them.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import guest
import ringside
from made_images import Archive, initrd_with, static_program
from patient import Patient, is_first

TCP_STATES = ["", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE",
              "CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING", "SYN_RECV"]
# A line for each process: its stat, then uid, resident pages and command line in hex.
PROCESSES = ("for p in /proc/[0-9]*; do [ -r $p/stat ] && echo \"$(cat $p/stat | tr '\\n' ' ')|"
             "$(grep Uid: $p/status | cut -f3)|$(cut -d' ' -f2 $p/statm)|$(xxd -p $p/cmdline | tr -d '\\n')\";"
             " done 2>/dev/null")


def look(*words, status=0):
    """Runs one of the commands; what it printed."""
    done = subprocess.run([ringside.binary(), *map(str, words)], capture_output=True, timeout=ringside.TIMEOUT,
                          check=False)
    if done.returncode != status or (status == 0 and done.stderr):
        raise AssertionError(f"{words}: status {done.returncode}: {done.stderr.decode()}")
    return done.stdout.decode()


def look_json(*words):
    """The list of its only machine."""
    (machine,), = json.loads(look(*words, "-O", "json")).values()
    if machine["notes"]:
        raise AssertionError(machine["notes"])
    return machine


def hex_address(text):
    """Address and port as /proc/net has them, in bytes."""
    address, port = text.split(":")
    words = [bytes.fromhex(address[at:at + 8])[::-1] for at in range(0, len(address), 8)]
    return b"".join(words), int(port, 16)


def packed(address):
    """The same of our own JSON."""
    family = socket.AF_INET6 if ":" in address["address"] else socket.AF_INET
    return socket.inet_pton(family, address["address"]), address["port"]


class Look:
    """The tests; the classes at the end say on which guest."""

    image = ""
    cpus = 0

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="ringside-look-"))
        archive = Archive()
        archive.file("bin/listed", static_program("listed.c"), 0o755)
        initrd = os.path.join(folder, "initrd")
        with open(initrd, "wb") as file:
            file.write(initrd_with(cls.image, archive))
        machine = guest.Guest(cls.image, cpus=cls.cpus, initrd=initrd, append=guest.PATIENT, options=[
            "-name", "looked-at", "-qmp", f"unix:{folder}/qmp,server=on,wait=off"])
        cls.port = cls.enterClassContext(machine)
        cls.target = f"qmp:{folder}/qmp"
        cls.pid = machine.pid()
        cls.do("listed > /tmp/said 2>&1 & until grep -q ready /tmp/said; do sleep 0.1; done")
        cls.listed = int(cls.do("pidof listed || grep -l listed /proc/[0-9]*/cmdline | head -n 1 | cut -d/ -f3")
                         .split()[-1])

    @classmethod
    def do(cls, command):
        """Runs a command that must succeed."""
        status, output = cls.port.run(command)
        if status != 0:
            raise AssertionError(f"{command}: status {status}: {output}")
        return output.decode(errors="surrogateescape")

    def truth_of_processes(self):
        """The processes that /proc has, by pid."""
        found = {}
        for line in self.do(PROCESSES).splitlines():
            stat, uid, resident, command = line.rsplit("|", 3)
            pid, name, rest = re.fullmatch(r"(\d+) \((.*)\) (.*)", stat, re.DOTALL).groups()
            words = rest.split()
            found[int(pid)] = {"name": name, "state": words[0], "ppid": int(words[1]), "uid": int(uid),
                               "ticks": int(words[11]) + int(words[12]), "nice": int(words[16]),
                               "threads": int(words[17]), "resident": int(resident) * 4096,
                               "command": bytes.fromhex(command)}
        return found

    def test_processes_are_those_of_proc(self):
        self.do("echo 3 > /proc/sys/vm/drop_caches")
        truth = self.truth_of_processes()
        seen = {each["pid"]: each for each in look_json("ps", self.target)["processes"]}

        # The shell that looked has gone; workers of the kernel come and go.
        steady = {pid for pid, each in truth.items() if not each["name"].startswith(("kworker", "sh"))
                  and pid < self.listed + 2}
        self.assertLessEqual(steady, set(seen), "every one is there")
        self.assertIn(self.listed, steady)
        for pid in steady:
            wanted, found = truth[pid], seen[pid]
            for fact in ("ppid", "uid", "nice", "threads"):
                self.assertEqual(found[fact], wanted[fact], (pid, fact, found))
            self.assertEqual(found["command"], wanted["command"].decode().split("\0")[:-1], found)
            self.assertEqual(found["kernel_thread"], pid != 1 and wanted["command"] == b"" and
                             wanted["state"] != "Z", found)
            self.assertAlmostEqual(found["cpu_ns"] / 1e7, wanted["ticks"], delta=100, msg=found)
        mine = seen[self.listed]
        self.assertEqual(mine["uid"], 1234)
        self.assertEqual((mine["state"], mine["threads"]), ("S", 2))
        self.assertEqual(mine["resident_bytes"], truth[self.listed]["resident"])
        self.assertGreater(mine["resident_bytes"], 0)
        self.assertEqual(mine["name"], "\033[2Jx\n9 9 9")
        zombie, = [each for each in seen.values() if each["ppid"] == self.listed]
        self.assertEqual((zombie["state"], zombie["resident_bytes"]), ("Z", None))
        self.assertEqual(truth[zombie["pid"]]["state"], "Z")

    def test_names_make_no_rows_and_control_no_terminal(self):
        text = look("ps", self.target) + look("lsof", "-p", self.listed, self.target)

        self.assertTrue(text.isprintable() or re.fullmatch(r"[^\x00-\x09\x0b-\x1f\x7f]*", text, re.DOTALL))
        self.assertIn(r"\033[2Jx\n9 9 9", text)
        self.assertIn(r"/tmp/\033[31mred\nPID  ROW", text)
        self.assertIn("/tmp/wähl mich", text)

    def test_threads_are_those_of_proc(self):
        truth = sorted(map(int, self.do(f"ls /proc/{self.listed}/task").split()))
        threads = [each for each in look_json("ps", "-T", self.target)["threads"] if each["pid"] == self.listed]

        self.assertEqual([each["tid"] for each in threads], truth)
        self.assertEqual([each["name"] for each in threads][1], "second")

    def test_control_groups_are_those_that_the_guest_makes(self):
        self.do("mkdir -p /tmp/groups && mount -t cgroup2 none /tmp/groups && mkdir -p '/tmp/groups/a b/inner'"
                f" && echo {self.listed} > '/tmp/groups/a b/inner/cgroup.procs'")
        truth = self.do(f"cat /proc/{self.listed}/cgroup").strip().split(":")[-1]
        mine, = [each for each in look_json("ps", self.target)["processes"] if each["pid"] == self.listed]

        self.assertEqual(mine["cgroup"], "/a b/inner")
        self.assertEqual(mine["cgroup"], truth)
        self.assertIn("CGROUP", look("ps", self.target).splitlines()[0])

    def test_the_log_is_the_guests(self):
        self.do("echo '<3>one\ttwo' > /dev/kmsg; echo 'with no level' > /dev/kmsg")
        truth = self.do("dmesg -r").splitlines()
        text = look("dmesg", self.target).splitlines()
        records = look_json("dmesg", self.target)["records"]

        self.assertEqual(text[-len(truth):], [re.sub(r"^<\d+>", "", line) for line in truth])
        # busybox shows what fits into the kernel's own size of a log.
        self.assertLess(len(text) - len(truth), 40)
        own = [line for each in records for line in each["text"].split("\n")]
        levels = [8 * each["facility"] + each["level"] for each in records for _ in each["text"].split("\n")]
        self.assertEqual(len(own), len(text))
        self.assertEqual([f"<{level}>" for level in levels][-len(truth):],
                         [re.match(r"<\d+>", line)[0] for line in truth])
        numbers = [each["sequence"] for each in records]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
        errors = look("dmesg", "-l", "err", self.target).splitlines()
        self.assertIn("one\ttwo", errors[-1])
        self.assertFalse([line for line in errors if "with no level" in line])

    def test_a_log_is_followed(self):
        with subprocess.Popen([ringside.binary(), "dmesg", "-w", "-l", "crit", self.target], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                for n in range(3):
                    self.do(f"echo '<5>not shown' > /dev/kmsg; echo '<2>number {n} of mine' > /dev/kmsg")
                    while f"number {n} of mine" not in (line := process.stdout.readline()):
                        self.assertNotEqual(line, "", "it ended")
                        self.assertNotIn("not shown", line)
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(ringside.TIMEOUT), 0)
                self.assertEqual(process.stderr.read(), "")
            finally:
                process.kill()

    def test_modules_are_those_of_proc(self):
        self.do("for m in $(cat /modules/virtio) $(cat /modules/nets); do insmod /modules/$m 2>/dev/null; done; true")
        truth = [line.split() for line in self.do("cat /proc/modules").splitlines()]
        seen = look_json("modules", self.target)["modules"]

        self.assertGreater(len(truth), 2)
        self.assertTrue([words for words in truth if words[3] != "-"], "some are used by others")
        for words, module in zip(truth, seen, strict=True):
            users = [user for user in words[3].split(",") if user not in ("", "-", "[permanent]")]
            self.assertEqual([module["name"], module["size"], module["references"], sorted(module["used_by"])],
                             [words[0], int(words[1]), int(words[2]), sorted(users)])
            self.assertEqual(module["state"], words[4].lower())
            self.assertEqual(module["permanent"], "[permanent]" in words[3])

    def test_mounts_are_those_of_proc(self):
        self.do("mkdir -p '/tmp/a b' && mount -t tmpfs -o ro,nosuid,nodev,noexec,noatime,sync 'na me' '/tmp/a b';"
                " mkdir -p /tmp/bound && mount --bind /data /tmp/bound && mount -o remount,bind,ro /tmp/bound")
        truth = [line.split() for line in self.do("cat /proc/1/mounts").splitlines()]
        rows = [line.split() for line in look("mounts", self.target).splitlines()[1:]]

        self.assertGreater(len(truth), 8)
        self.assertEqual([row[:3] for row in rows], [words[:3] for words in truth])
        for row, words in zip(rows, truth):
            options, wanted = row[3].split(","), words[3].split(",")
            self.assertEqual(options, wanted[:len(options)], "then come those of the file system's own")
        paths = [each["path"] for each in look_json("mounts", self.target)["mounts"]]
        self.assertIn("/tmp/a b", paths)

    def test_files_are_those_of_proc(self):
        lines = self.do(f"cd /proc/{self.listed}; for f in cwd root exe fd/*; do echo \"$f|$(readlink $f | xxd -p |"
                        " tr -d '\\n')|$(stat -L -c '%i %f %s' $f)|$(grep pos: ${f/fd/fdinfo} 2>/dev/null | cut -f2)\""
                        "; done").splitlines()
        seen = look_json("lsof", "-p", self.listed, self.target)["files"]

        found = {each["role"] or f"fd/{each['fd']}": each for each in seen}
        self.assertEqual(len(seen), len(lines))
        for line in lines:
            name, target, stat, position = line.split("|")
            file = found[name]
            # readlink() ends its line, and a name may have one in it.
            self.assertEqual(file["path"].encode() + b"\n", bytes.fromhex(target), file)
            inode, mode, size = stat.split()
            self.assertEqual(file["inode"], int(inode), file)
            kinds = {1: "FIFO", 2: "CHR", 4: "DIR", 6: "BLK", 8: "REG", 12: "SOCK", 0: "ANON"}
            self.assertEqual(file["type"], kinds[int(mode, 16) >> 12], file)
            if file["size"] is not None:
                self.assertEqual(file["size"], int(size), file)
            if position:
                self.assertEqual(file["position"], int(position), file)
        by_path = {each["path"]: each for each in seen}
        self.assertEqual((by_path["/tmp/gone (deleted)"]["access"], by_path["/tmp/gone (deleted)"]["size"]), ("u", 333))
        self.assertEqual(by_path["/data/input"]["access"], "r")
        self.assertIn("/memfd:remembered (deleted)", by_path)
        self.assertIn("anon_inode:[eventpoll]", by_path)
        self.assertEqual((by_path["/dev/null"]["device"], by_path["/dev/null"]["type"]), ({"major": 1, "minor": 3}, "CHR"))
        everyone = look_json("lsof", self.target)["files"]
        self.assertLess(len(seen), len(everyone))
        refused = subprocess.run([ringside.binary(), "lsof", "-p", "99999", self.target], text=True, check=False,
                                 capture_output=True, timeout=ringside.TIMEOUT)
        self.assertEqual((refused.returncode, refused.stderr), (1, "ringside: there is no process 99999\n"))

    def test_sockets_are_those_of_proc(self):
        truth = {}
        for protocol in ("tcp", "tcp6", "udp", "udp6"):
            for line in self.do(f"cat /proc/net/{protocol}").splitlines()[1:]:
                words = line.split()
                state = TCP_STATES[int(words[3], 16)]
                sent, received = (int(word, 16) for word in words[4].split(":"))
                place = (protocol, *hex_address(words[1]), *hex_address(words[2]))
                is_udp = protocol.startswith("udp")
                truth[place] = {"state": None if is_udp and state == "CLOSE" else state, "send_queue": sent,
                                "receive_queue": received, "uid": int(words[7]), "inode": int(words[9]) or None}
        sockets = look_json("netstat", self.target)["sockets"]
        seen = {(each["protocol"], *packed(each["local"]), *packed(each["remote"])): each
                for each in sockets if each["protocol"] != "unix"}

        self.assertEqual(set(seen), set(truth))
        for place, wanted in truth.items():
            found = {name: seen[place][name] for name in wanted}
            if wanted["state"] == "TIME_WAIT":
                wanted["uid"] = None
            self.assertEqual(found, wanted, place)
        states = {each["state"] for each in seen.values()}
        self.assertLessEqual({"LISTEN", "ESTABLISHED", "TIME_WAIT", None}, states)
        self.assertIn(111, {each["receive_queue"] for each in seen.values()})
        self.check_holders(sockets)
        self.check_unix([each for each in sockets if each["protocol"] == "unix"])

    def check_holders(self, sockets):
        """Each socket that /proc/PID/fd of listed has, with its descriptors."""
        lines = self.do(f"cd /proc/{self.listed}/fd; for f in *; do echo $f $(readlink $f); done").splitlines()
        truth = {int(match[2]): int(match[1]) for line in lines
                 if (match := re.fullmatch(r"(\d+) socket:\[(\d+)\]", line))}
        seen = {each["inode"]: [one["fd"] for one in each["processes"] if one["pid"] == self.listed]
                for each in sockets if each["inode"]}

        self.assertGreater(len(truth), 10)
        self.assertEqual({inode: seen.get(inode) for inode in truth}, {inode: [fd] for inode, fd in truth.items()})

    def check_unix(self, sockets):
        """/proc/net/unix: type, inode and name of each."""
        kinds = {"0001": "stream", "0002": "dgram", "0005": "seqpacket"}
        truth = []
        for line in self.do("cat /proc/net/unix").splitlines()[1:]:
            words = line.split(maxsplit=7)
            is_listening, is_connected = int(words[3], 16) & 0x10000, words[5] == "03"
            truth.append((kinds[words[4]], int(words[6]) or None, words[7] if len(words) > 7 else None,
                          "LISTEN" if is_listening else "CONNECTED" if is_connected else None))
        seen = [(each["type"], each["inode"], each["path"], each["state"]) for each in sockets]

        self.assertCountEqual(seen, truth)
        self.assertLessEqual({"@hidden", "/tmp/socket"}, {each["path"] for each in sockets})

    def test_top_shows_who_takes_the_cpu(self):
        self.do("sh -c 'while :; do :; done' & echo $! > /tmp/spinner")
        spinner = int(self.do("cat /tmp/spinner"))
        try:
            rounds = [json.loads(line)["top"] for line in
                      look("top", "-n", "2", "-d", "1", "-O", "jsonl", self.target).splitlines()]
            text = look("top", "-b", "-n", "1", self.target)
        finally:
            self.do(f"kill {spinner}")

        self.assertEqual(len(rounds), 2)
        for (machine,) in rounds:
            self.assertEqual((machine["machine"], machine["cpus"]), ("looked-at", self.cpus))
            busiest = max(machine["processes"], key=lambda each: each["cpu_percent"])
            self.assertEqual(busiest["pid"], spinner, machine)
            shares = machine["cpu_percent"]
            self.assertAlmostEqual(sum(shares.values()), 100, delta=5, msg=shares)
            self.assertGreater(shares["user"] + shares["system"], 25 / self.cpus, shares)
        header = next(line for line in text.splitlines() if line.startswith("VM "))
        first = text.splitlines()[text.splitlines().index(header) + 1].split()
        self.assertEqual(first[:2], ["looked-at", str(spinner)], text)

    def test_top_has_a_screen_with_keys(self):
        lead, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 20, 60, 0, 0))
        before = termios.tcgetattr(terminal)
        with subprocess.Popen([ringside.binary(), "top", "-d", "60", self.target], stdin=terminal, stdout=terminal,
                              stderr=subprocess.PIPE) as process:
            try:
                def screen(has):
                    """The next whole screen that has this."""
                    shown = b""
                    while not re.search(has, shown.split(b"\033[H")[-1], re.DOTALL):
                        self.assertTrue(select.select([lead], [], [], ringside.TIMEOUT)[0], shown)
                        shown += os.read(lead, 65536)
                    return shown.split(b"\033[H")[-1].decode()
                first = screen(rb"VM [^\033]*PID.*\033\[J")
                os.write(lead, b"p")
                by_pid = screen(rb"VM [^\033]*PID.*\033\[J")
                os.write(lead, b"T")
                screen(rb"VM [^\033]*TID.*\033\[J")
                os.write(lead, b"q")
                self.assertEqual(process.wait(ringside.TIMEOUT), 0)
                self.assertEqual(process.stderr.read(), b"")
            finally:
                process.kill()
        for shown in (first, by_pid):
            lines = [line.rstrip("\r") for line in re.sub(r"\033\[[KJ]", "", shown).split("\n")]
            self.assertLessEqual(len(lines), 20)
            self.assertLessEqual(max(map(len, lines)), 60)
        self.assertRegex(by_pid, r"looked-at +1 ")
        self.assertEqual(termios.tcgetattr(terminal), before)
        os.close(lead)
        os.close(terminal)

    def test_without_a_target_all_machines_are_there(self):
        done = subprocess.run([ringside.binary(), "ps"], text=True, capture_output=True,
                              timeout=ringside.TIMEOUT, check=False)

        # Of machines that belong to others, some may not be looked at.
        self.assertRegex(done.stdout.splitlines()[0], r"^VM +PID +PPID")
        rows = [line.split() for line in done.stdout.splitlines() if line.startswith("looked-at ")]
        self.assertIn(["looked-at", str(self.listed)], [row[:2] for row in rows])


class OfMany(unittest.TestCase):
    """A guest of a thousand processes."""

    def test_a_thousand_processes(self):
        archive = Archive()
        archive.file("bin/listed", static_program("listed.c"), 0o755)
        with tempfile.TemporaryDirectory(prefix="ringside-look-") as folder:
            initrd = os.path.join(folder, "initrd")
            with open(initrd, "wb") as file:
                file.write(initrd_with("debian-6.12", archive))
            options = ["-qmp", f"unix:{folder}/qmp,server=on,wait=off"]
            with guest.Guest("debian-6.12", initrd=initrd, append=guest.PATIENT, options=options) as port:
                port.run("listed tasks 1000 > /tmp/said & until grep -q ready /tmp/said; do sleep 0.1; done")
                deadline = time.monotonic() + guest.TIMEOUT
                asleep = 0
                while asleep < 1000 and time.monotonic() < deadline:
                    found = look_json("ps", f"qmp:{folder}/qmp")["processes"]
                    asleep = sum(each["name"] == "asleep" for each in found)
                self.assertEqual(asleep, 1000)


class Saved(unittest.TestCase):
    """A guest that panicked, by its core and by its memory while its QEMU still runs."""

    def test_the_log_of_a_panic(self):
        for image in ringside.IMAGES:
            with self.subTest(image), Patient(image, "panic=0") as patient:
                patient.hang("echo c > /proc/sysrq-trigger")
                patient.why_once(is_first("panicked"))
                saved = look("dmesg", "--core", patient.core)

                self.assertIn("Kernel panic - not syncing: sysrq triggered crash", saved)
                self.assertIn("sysrq_handle_crash", saved)
                self.assertEqual(saved, look("dmesg", patient.target("second")))
                self.assertIn("[kthreadd]", look("ps", "--core", patient.core))
                emergencies = look("dmesg", "-l", "emerg", "--core", patient.core).splitlines()
                self.assertIn("Kernel panic - not syncing", emergencies[0])
                self.assertIn(" rootfs ", look("mounts", "--core", patient.core))


globals().update(ringside.on_each(Look, ringside.GUESTS))

if __name__ == "__main__":
    unittest.main()
