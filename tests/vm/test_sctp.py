"""The provider sctp, in guests that have loaded the module. Truth is what sctp.c does, and the kernel's counts."""

import pathlib
import re
import tempfile
import unittest

import ringside
from made_images import Archive, initrd_with, static_program
from test_attach_qmp import Machine, begin, end, started

TIMES, MESSAGES = 20, 5
LOAD = "for module in $(cat /modules/sctp); do insmod /modules/$module; done"


class Associations:
    """The tests, on each guest."""

    image = ""

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="ringside-sctp-")))
        archive = Archive()
        archive.file("bin/sctp", static_program("sctp.c"), 0o755)
        (folder / "initrd").write_bytes(initrd_with(cls.image, archive))
        cls.machine = cls.enterClassContext(Machine(cls.image, cpus=2, initrd=folder / "initrd"))

    def counts_of(self, program, command):
        """The counts that the program printed while the guest ran the command, by key."""
        with self.machine.trace(begin(program), ["-q"]) as running:
            started(running)
            status, said = self.machine.port.run(command)
            self.assertEqual(status, 0, said)
            outcome = end(running)
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        return outcome.counts()

    def kernel_counts(self):
        said = self.machine.port.run("cat /proc/net/sctp/snmp")[1].decode()
        return {name: int(count) for name, count in re.findall(r"^Sctp(\w+)\s+(\d+)$", said, re.MULTILINE)}

    def test_one_without_the_module_and_all_with_it(self):
        outcome = self.machine.run("sctp:::send { }")
        self.assertNotEqual(outcome.status, 0)
        self.assertIn("module sctp", outcome.stderr)

        status, said = self.machine.port.run(LOAD)
        self.assertEqual(status, 0, said)
        self.check_packets()
        self.check_states()

    def check_packets(self):
        before = self.kernel_counts()
        counts = self.counts_of(
            "sctp:::send, sctp:::receive { @[probename] = count(); }"
            "sctp:::send, sctp:::receive /args[4]->sctp_chunk_hdr->sch_id == 0/ {"
            " @bytes[probename, args[3]->sctps_state, args[3]->sctps_raddr] ="
            " sum(args[2]->ip_plength - sizeof (sctp_hdr_t)); }"
            'END { printa("%s %@d\\n", @); printa("%s %d %s %@d\\n", @bytes); }',
            f"sctp talk {TIMES} {MESSAGES}")
        after = self.kernel_counts()
        self.assertEqual(
            (counts["send"], counts["receive"]),
            (after["OutSCTPPacks"] - before["OutSCTPPacks"], after["InSCTPPacks"] - before["InSCTPPacks"]))
        # Chunks of data have a header of 16 bytes; others may come in their packets.
        for name in ("send", "receive"):
            total = sum(count for key, count in counts.items() if key.startswith(f"{name} "))
            self.assertGreaterEqual(total, TIMES * MESSAGES * (1000 + 16))
            self.assertGreater(counts[f"{name} 3 127.0.0.1"], 0)

    def check_states(self):
        counts = self.counts_of(
            "sctp:::state-change { @[sctp_state_string[args[5]->sctps_state],"
            " sctp_state_string[args[3]->sctps_state]] = count();"
            " @ends[args[3]->sctps_state == SCTP_STATE_CLOSED] = count(); }"
            'END { printa("%s %s %@d\\n", @); printa("ends-%d %@d\\n", @ends); }',
            f"sctp talk {TIMES} {MESSAGES} && sctp refused")
        expected = {
            "state-closed state-cookie-wait": TIMES + 1, "state-cookie-wait state-cookie-echoed": TIMES,
            "state-cookie-echoed state-established": TIMES, "state-closed state-established": TIMES,
            "state-shutdown-sent state-closed": TIMES, "state-shutdown-ack-sent state-closed": TIMES,
            "state-cookie-wait state-closed": 1, "ends-1": 2 * TIMES + 1}
        self.assertEqual({key: counts.get(key) for key in expected}, expected, counts)


globals().update(ringside.on_each(Associations, ringside.GUESTS))


if __name__ == "__main__":
    unittest.main()
