"""The providers ip, tcp, udp and mib between two guests: virtio's network cards, joined by a wire.

One ringside traces both. Truth is what peers.c sends, the kernels' own counts, and the other guest.
"""

import contextlib
import pathlib
import re
import tempfile
import unittest

import ringside
from made_images import Archive, initrd_with, static_program
from test_attach_qmp import Machine, end

# The caller and the one that is called.
IMAGES = {"left": ("debian-6.1", 2), "right": ("debian-6.12", 1)}
ADDRESSES = {"left": "10.0.0.1", "right": "10.0.0.2"}
NOBODY = "10.0.0.9"
TIMES = 30
ASKED, ANSWERED = 3000, 5000  # bytes by TCP, as in peers.c
DATAGRAM, REPLY = 200, 100  # bytes by UDP
UDP_HEADER = 8


def wire(folder, name, other):
    """QEMU's options for a card whose packets go to the other guest's."""
    own, far = (f"{end_of}.type=unix,{end_of}.path={folder}/{whose}"
                for end_of, whose in (("local", name), ("remote", other)))
    mac = f"52:54:00:00:00:{ADDRESSES[name].rsplit('.')[-1].zfill(2)}"
    return ["-name", name, "-netdev", f"dgram,id=wire,{own},{far}",
            "-device", f"virtio-net-pci,netdev=wire,mac={mac},romfile="]


def up(name):
    """The command that gives a guest its address; nobody's is known, so that nobody is asked for."""
    return ("for module in $(cat /modules/nets); do insmod /modules/$module 2>/dev/null; done;"
            f" ip addr add {ADDRESSES[name]}/24 dev eth0 && ip link set eth0 up &&"
            f" arp -s {NOBODY} 52:54:00:00:00:99")


def kernel_counts(text, protocol, name):
    """How much a number of /proc/net/snmp has grown between the two times that the text has it."""
    rows = re.findall(rf"^{protocol}: (.*)$", text, re.MULTILINE)
    at = rows[0].split().index(name)
    return int(rows[-1].split()[at]) - int(rows[1].split()[at])


class Peers(unittest.TestCase):
    """One boot of both for all of them."""

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="ringside-wire-")))
        archive = Archive()
        archive.file("bin/peers", static_program("peers.c"), 0o755)
        cls.machines = {}
        for name, other in (("left", "right"), ("right", "left")):
            image, cpus = IMAGES[name]
            initrd = folder / f"{name}-initrd"
            initrd.write_bytes(initrd_with(image, archive))
            machine = Machine(image, cpus=cpus, initrd=initrd, options=wire(folder, name, other))
            cls.machines[name] = cls.enterClassContext(machine)
        for name, machine in cls.machines.items():
            status, said = machine.port.run(up(name))
            if status != 0:
                raise AssertionError(said)

    @contextlib.contextmanager
    def traced(self, program):
        """A ringside that traces both; what it found is in the list after the block."""
        targets = [word for machine in self.machines.values()
                   for word in ("--attach", f"qmp:{machine.path}")]
        program = 'BEGIN { printf("tracing\\n"); } ' + program
        found = []
        with ringside.Run(program, machine=False, options=[*targets, "-q"]) as running:
            running.read_until(lambda text: text.count("tracing\n") == len(self.machines))
            yield found
            outcome = end(running)
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        found.append(outcome)

    def run_on(self, name, command):
        status, said = self.machines[name].port.run(command)
        self.assertEqual(status, 0, said)
        return said.decode()

    def talk(self):
        """Lets the two talk; what each says, with its kernel's counts before and after."""
        snmp = "cat /proc/net/snmp"
        right = self.machines["right"].port
        right.start(f"{snmp}; peers serve {TIMES} && {snmp}")
        right.send("go")
        right.wait_for(b"serving")
        left = self.run_on("left", f"{snmp}; peers call {ADDRESSES['right']} {TIMES} && {snmp}")
        status, said = right.finish()
        self.assertEqual(status, 0, said)
        return {"left": left, "right": said.decode()}

    def test_connections_and_their_bytes(self):
        # A segment that is sent again has the bytes of the first one.
        with self.traced(
                "tcp:::connect-established, tcp:::accept-established"
                ' /args[3]->tcps_raddr == (vmname == "left" ? "10.0.0.2" : "10.0.0.1")/'
                " { @[vmname, probename, args[3]->tcps_local] = count(); }"
                " tcp:::send, tcp:::receive /args[2]->ip_plength > args[4]->tcp_offset/ {"
                " this->port = args[4]->tcp_sport + args[4]->tcp_dport;"
                " @first[vmname, probename, this->port] = min(args[4]->tcp_seq);"
                " @last[vmname, probename, this->port] ="
                " max(args[4]->tcp_seq + args[2]->ip_plength - args[4]->tcp_offset); }"
                ' END { printa("%s %s %d %@d\\n", @);'
                ' printa("bytes %s %s %d %@d %@d\\n", @first, @last); }') as found:
            said = self.talk()

        counts = found[0].counts()
        self.assertEqual({name: counts.get(name) for name in (
            "left connect-established 0", "right accept-established 0")}, {
                "left connect-established 0": TIMES, "right accept-established 0": TIMES}, found)
        sizes = {}
        for who, first, last in re.findall(r"^bytes (\w+ \w+) \d+ (\d+) (\d+)$",
                                           found[0].stdout, re.MULTILINE):
            sizes.setdefault(who, []).append(int(last) - int(first))
        self.assertEqual(sizes, {"left send": [ASKED] * TIMES, "right receive": [ASKED] * TIMES,
                                 "right send": [ANSWERED] * TIMES,
                                 "left receive": [ANSWERED] * TIMES}, found)
        self.assertEqual(kernel_counts(said["left"], "Tcp", "ActiveOpens"), TIMES)
        self.assertEqual(kernel_counts(said["right"], "Tcp", "PassiveOpens"), TIMES)

    def test_packets_are_sent_here_and_received_there(self):
        with self.traced(
                "udp:::send, udp:::receive"
                " { @[vmname, probename, args[2]->ip_saddr, args[4]->udp_length] = count(); }"
                " ip:::send, ip:::receive /args[4]->ipv4_protocol == IPPROTO_ICMP/"
                " { @[vmname, args[3]->if_name, args[2]->ip_saddr, args[2]->ip_plength] = count(); }"
                ' END { printa("%s %s %s %d %@d\\n", @); }') as found:
            said = self.talk()
            pings = 7
            self.run_on("left", f"ping -c {pings} -i 0.1 -s 64 {ADDRESSES['right']}")

        left, right = ADDRESSES["left"], ADDRESSES["right"]
        asked, answered = DATAGRAM + UDP_HEADER, REPLY + UDP_HEADER
        ping = 64 + 8
        self.assertEqual(found[0].counts(), {
            f"left send {left} {asked}": TIMES, f"right receive {left} {asked}": TIMES,
            f"right send {right} {answered}": TIMES, f"left receive {right} {answered}": TIMES,
            # Each guest sends one of the two and receives the other.
            f"left eth0 {left} {ping}": pings, f"right eth0 {left} {ping}": pings,
            f"left eth0 {right} {ping}": pings, f"right eth0 {right} {ping}": pings}, found)
        self.assertEqual(kernel_counts(said["left"], "Udp", "OutDatagrams"), TIMES)
        self.assertEqual(kernel_counts(said["right"], "Udp", "InDatagrams"), TIMES)

    def test_what_nobody_answers_is_sent_again(self):
        with self.traced(
                f'tcp:::send /args[2]->ip_daddr == "{NOBODY}"/'
                " { @[vmname, probename, args[4]->tcp_flags == TH_SYN, args[3]->tcps_retransmit]"
                " = sum(1); }"
                " mib:::tcpRetransSegs { @[vmname, probename, 0, 0] = sum(arg0); }"
                f' tcp:::connect-request /args[2]->ip_daddr == "{NOBODY}"/'
                " { @[vmname, probename, 0, 0] = sum(1); }"
                ' END { printa("%s %s %d %d %@d\\n", @); }') as found:
            snmp = "cat /proc/net/snmp"
            said = self.run_on("left", f"{snmp}; peers unanswered {NOBODY} && {snmp}")

        self.assertEqual(kernel_counts(said, "Tcp", "RetransSegs"), 2, said)
        self.assertEqual(found[0].counts(), {
            "left send 1 0": 1, "left send 1 1": 2, "left tcpRetransSegs 0 0": 2,
            "left connect-request 0 0": 1}, found)


if __name__ == "__main__":
    unittest.main()
