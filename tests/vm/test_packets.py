"""pcap() and copyoutmbuf() against datagrams whose bytes are known, on every guest.

tshark reads what was written: that it is a capture, how many packets it has, and each of their bytes.
"""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import ringside
from made_images import image_with_programs

FIELDS = ("udp.dstport", "frame.len", "frame.cap_len", "udp.payload", "frame.time_epoch",
          "frame.interface_name", "frame.comment", "_ws.malformed")
DROPPED = "sdt:skb::kfree_skb /args[2] == SKB_DROP_REASON_NO_SOCKET/"
ETHERNET, IP, UDP = 14, 20, 8  # bytes of headers


def datagram(number, size):
    """The bytes that packets.c sends."""
    return bytes((number + 7 * k + k // 256) % 256 for k in range(size))


def read_back(path):
    """Each UDP packet of a capture, by tshark, as {field: text}."""
    asked = [word for field in FIELDS for word in ("-e", field)]
    made = subprocess.run(["tshark", "-n", "-r", path, "-Y", "udp && !icmp", "-T", "fields",
                           "-E", "separator=|", "-E", "aggregator=;", *asked],
                          capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise AssertionError(f"tshark cannot read {path}: {made.stderr}")
    return [dict(zip(FIELDS, line.split("|"))) for line in made.stdout.splitlines()]


@unittest.skipUnless(shutil.which("tshark"), "no tshark: apt-get install tshark")
class Packets:
    """The tests; the classes at the end say on which guest."""

    image = ""
    cpus = 0

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="ringside-packets-")))
        self.environment = self.enterContext(image_with_programs(self.image, "packets"))

    def trace(self, program, command, *options):
        """Runs a program to the command's end, which has to be a good one."""
        outcome = ringside.run(program, image=self.image, cpus=self.cpus, command=command,
                               options=options, environment=self.environment)
        self.assertEqual(outcome.status, 0, outcome)
        return outcome

    def check_datagrams(self, packets, port, count, size, headers):
        """All of them are there, in their order, and whole."""
        of_port = [packet for packet in packets if packet["udp.dstport"] == str(port)]
        whole = str(headers + UDP + size)
        self.assertEqual([packet["udp.payload"] for packet in of_port],
                         [datagram(number, size).hex() for number in range(count)])
        for packet in of_port:
            self.assertEqual((packet["frame.len"], packet["frame.cap_len"], packet["_ws.malformed"]),
                             (whole, whole, ""))
        return of_port

    def check_times(self, dropped, outcome):
        """Each is that of its firing, on the clock that the host had at the first of all."""
        firings = [(name, int(time), int(wall)) for name, time, wall in
                   re.findall(r"<(at|sent)> (\d+) (\d+)$", outcome.stdout, re.MULTILINE)]
        between = firings[0][2] - firings[0][1]
        self.assertEqual([int(packet["frame.time_epoch"].replace(".", "")) for packet in dropped],
                         [time + between for name, time, _ in firings if name == "at"], outcome)

    def test_each_dropped_datagram_is_there_whole(self):
        drops, sent = self.folder / "drops", self.folder / "sent"
        outcome = self.trace(
            f"{DROPPED} {{ pcap(args[0], PCAP_ETHER); @dropped = count(); }}"
            ' ip:::send /execname == "packets" && args[2]->ip_plength < 5000/'
            ' { printf("<sent> %d %d\\n", timestamp, walltimestamp);'
            f' freopen("{sent}"); pcap(args[0]->pkt_addr, PCAP_IP); freopen(""); }}'
            f' {DROPPED} {{ printf("<at> %d %d", timestamp, walltimestamp); tracemem(copyoutmbuf(args[0], 24), 24); }}',
            # One that has pages, one that came in fragments, one that is received.
            "packets 9001 5 100; packets 9002 3 20000; packets 9004 4 1000 here;"
            " ip link set lo mtu 1500; packets 9003 4 8000",
            "-q", "-w", "-x", "pcapsize=64k", "-x", f"pcapfile={drops}")

        self.assertEqual(outcome.stderr, "", outcome)
        self.assertRegex(outcome.stdout, r"(?m)^ +12$")
        dropped = read_back(drops)
        self.assertEqual(len(dropped), 12, dropped)
        of_first = self.check_datagrams(dropped, 9001, 5, 100, ETHERNET + IP)
        self.check_datagrams(dropped, 9002, 3, 20000, ETHERNET + IP)
        self.check_datagrams(dropped, 9003, 4, 8000, ETHERNET + IP)
        self.check_times(dropped, outcome)
        for packet in of_first:
            self.assertEqual(packet["frame.interface_name"], "lo")
            self.assertRegex(packet["frame.comment"],
                             r"^probe sdt:skb::kfree_skb;process [^,]+, pid \d+, CPU \d+$")
        # Where the kernel finds no socket, it has come to the UDP header; these are its ports.
        dumps = re.findall(r"^ +0: ([0-9a-f ]{47})", outcome.stdout, re.MULTILINE)
        self.assertEqual([dump[6:11] for dump in dumps],
                         ["23 29"] * 5 + ["23 2a"] * 3 + ["23 2b"] * 4, outcome)
        self.assertEqual(bytes.fromhex(dumps[1])[UDP:], datagram(1, 100)[:16 - UDP])

        packets = read_back(sent)
        self.check_datagrams(packets, 9001, 5, 100, IP)
        self.check_datagrams(packets, 9004, 4, 1000, IP)

    def test_packets_are_cut_and_what_is_none_is_a_fault(self):
        path = self.folder / "cut"
        outcome = self.trace(
            f"{DROPPED} {{ pcap(args[0], PCAP_ETHER); }}"
            " BEGIN { pcap(0, PCAP_IP); } BEGIN { pcap(4096, PCAP_IP); }"
            " BEGIN { pcap(alloca(256), PCAP_IP); } BEGIN { pcap(-1, PCAP_ETHER); }"
            " BEGIN { tracemem(copyoutmbuf(4096, 64), 64); }",
            "packets 9001 2 20000; packets 9002 1 40", "-O", "jsonl", "-x", f"pcapfile={path}")

        self.assertEqual(len(re.findall("^ringside: error on enabled probe ID .*: invalid address", outcome.stderr,
                                        re.MULTILINE)), 5, outcome)
        records = [json.loads(line) for line in outcome.stdout.splitlines() if line.startswith("{")]
        items = [record["output"][0] for record in records if record.get("name") == "kfree_skb"]
        self.assertEqual([item["length"] for item in items],
                         [ETHERNET + IP + UDP + size for size in (20000, 20000, 40)], outcome)
        packets = [bytes.fromhex(item["packet"]) for item in items]
        self.assertEqual([packet[ETHERNET + IP + UDP:] for packet in packets],
                         [datagram(0, 20000)[:2048 - ETHERNET - IP - UDP],
                          datagram(1, 20000)[:2048 - ETHERNET - IP - UDP], datagram(0, 40)])
        self.assertEqual({(item["device"], item["link-type"]) for item in items}, {("lo", 1)})
        self.assertEqual([(packet["frame.len"], packet["frame.cap_len"]) for packet in read_back(path)],
                         [("20042", "2048"), ("20042", "2048"), ("82", "82")])


globals().update(ringside.on_each(Packets, ringside.GUESTS))


if __name__ == "__main__":
    unittest.main()
