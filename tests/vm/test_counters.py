"""vminfo, sysinfo and mib against the guest's own counters and known numbers, on every guest.

The counters that a probe stands on are compared at every firing: what it has before must be what it
had before the last one and what was added then, for each CPU, or something was missed.
"""

import re
import unittest

import guest
import ringside
from made_images import image_with_programs
from test_attach_qmp import Machine

# @wrong counts the firings that do not follow the one before; a counter is a CPU's.
CHAIN = (" { this->now = *(uint64_t *)arg1;"
         " @wrong[probename] = sum(follows[probename, arg1] != 0 &&"
         " follows[probename, arg1] != this->now);"
         " follows[probename, arg1] = this->now + %s; }")
DECLARED = 'BEGIN { follows["", (uint64_t)0] = (uint64_t)0; }'
# Probes, and the kernel's words for what they count.
PAGING = {"anonpgin": "pswpin", "pgswapin": "pswpin", "anonpgout": "pswpout", "pgswapout": "pswpout"}
MIB = {"icmpInMsgs": "Icmp.InMsgs", "icmpOutMsgs": "Icmp.OutMsgs", "icmpInErrors": "Icmp.InErrors",
       "icmpOutErrors": "Icmp.OutErrors", "tcpTimKeepaliveProbe": "TcpExt.TCPKeepAlive",
       "tcpTimRetrans": "TcpExt.TCPTimeouts", "tcpTimRetransDrop": "TcpExt.TCPAbortOnTimeout",
       "tcpRetransSegs": "Tcp.RetransSegs"}


class Counters:
    """The tests; the classes at the end say on which guest."""

    image = ""
    cpus = 0
    disk = True

    def trace(self, program, command):
        """Runs it in a guest that has counters.c, stable.c and timers.c."""
        environment = self.enterContext(
            image_with_programs(self.image, "counters", "stable", "timers"))
        outcome = ringside.run(program, image=self.image, cpus=self.cpus, command=command,
                               options=["-q"], environment=environment)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertIn("status 0", outcome.stdout.splitlines(), outcome)
        return outcome

    def test_memory_and_the_system_by_known_numbers(self):
        outcome = self.trace(
            DECLARED + ' dtrace:::BEGIN { phase = 0; ticks[tid, ""] = 0; }'
            ' syscall::getppid:entry /execname == "counters"/ { phase++; }'
            ' vminfo:::, sysinfo::: /execname == "counters" && phase < ' f"{9 if self.disk else 7}" '/'
            ' { @[probename, phase] = sum(arg0); }'
            " vminfo:::as_fault, vminfo:::maj_fault" + CHAIN % "arg0" +
            " sysinfo:::cpu_ticks_user, sysinfo:::cpu_ticks_kernel { ticks[tid, probename] += arg0; }"
            ' proc:::exit /execname == "counters"/'
            ' { printf("<ticks> %d %d %d %d\\n", ticks[tid, "cpu_ticks_user"],'
            ' curthread->utime, ticks[tid, "cpu_ticks_kernel"], curthread->stime); }'
            ' END { printa("%s %d %@d\\n", @); printa("<wrong> %s %@d\\n", @wrong); }',
            f"counters {'' if self.disk else 'diskless'}; echo status $?")

        counts = outcome.counts()
        expected = {"sysread 1": 49, "readch 1": 490, "syswrite 2": 43, "writech 2": 43 * 7,
                    "sysfork 3": 5, "sysvfork 3": 3, "nthreads 3": 8,
                    "sysexec 4": 2, "namei 4": 11, "msg 5": 8, "sema 5": 3, "as_fault 6": 500,
                    "pgin 7": 8, "pgpgin 7": 8 * 16, "pgout 7": 4, "pgpgout 7": 4 * 16,
                    "bread 7": 8, "bwrite 7": 4, "maj_fault 8": 5,
                    "<wrong> as_fault": 0, "<wrong> maj_fault": 0}
        if not self.disk:
            expected = {name: count for name, count in expected.items()
                        if name.split()[1] not in ("7", "8")}
        self.assertEqual({name: counts.get(name, 0) for name in expected}, expected, outcome)
        # Of the process that burns its time: the kernel gives it 4 ms for each tick (HZ is 250).
        rows = re.findall(r"^<ticks> (\d+) (\d+) (\d+) (\d+)$", outcome.stdout, re.MULTILINE)
        user, utime, system, stime = map(int, rows[-1])
        self.assertEqual((user * 4_000_000, system * 4_000_000), (utime, stime), outcome)
        self.assertGreaterEqual(user, 5, outcome)

    def test_interrupts_as_the_kernel_counts_them(self):
        outcome = ringside.run(
            'proc:::exec-success /execname == "cat"/ { cats++; } proc:::exit /execname == "cat"/'
            ' { cats++; } sysinfo:::intr { @[cats] = sum(arg0); } END { printa("<%d> %@d\\n", @); }',
            image=self.image, cpus=self.cpus, options=["-q"],
            command="cat /proc/interrupts; workload --getppid 1000 --processes 2; sleep 0.2;"
                    " cat /proc/interrupts; true")

        self.assertEqual(outcome.status, 0, outcome)
        counts = outcome.counts()
        # Rescheduling and NMIs have handlers of their own; the rest of the words count other things.
        sums = []
        for table in outcome.stdout.split("CPU0")[1:]:
            rows = re.findall(r"^ *(\d+|LOC|SPU|IWI|CAL|HYP|HVS|TRM|THR|DFR):((?: +\d+)+)", table,
                              re.MULTILINE)
            sums.append(sum(int(word) for _, row in rows for word in row.split()[:self.cpus]))
        kernel = sums[1] - sums[0]
        self.assertLessEqual(counts["<2>"], kernel, outcome)
        self.assertGreaterEqual(sum(counts.get(f"<{n}>", 0) for n in (1, 2, 3)), kernel, outcome)

    def test_packets_as_the_kernel_counts_them(self):
        outcome = self.trace(
            f"{DECLARED} mib::: {{ @[probename] = sum(arg0); }} mib:::" + CHAIN % "arg0" +
            ' END { printa("%s %@d\\n", @); printa("<wrong> %s %@d\\n", @wrong); }',
            "cat /proc/net/snmp /proc/net/snmp6 | grep -v Icmp; stable; echo status $?;"
            " cat /proc/net/snmp /proc/net/snmp6 | grep -v Icmp")

        counts = outcome.counts()
        for group, wanted in (("Ip", "InReceives InDelivers OutRequests"),
                              ("Tcp", "ActiveOpens PassiveOpens AttemptFails InSegs OutSegs"
                                      " OutRsts RetransSegs EstabResets"),
                              ("Udp", "InDatagrams OutDatagrams NoPorts InErrors")):
            names, before, _, after = [row.split() for row in re.findall(
                rf"^{group}: (.*)$", outcome.stdout, re.MULTILINE)]
            for name, old, new in zip(names, before, after):
                if name not in wanted.split():
                    continue
                kernel = int(new) - int(old)
                if group == "Udp":  # the kernel counts those of IPv6 apart
                    six = re.findall(rf"^Udp6{name}\s+(\d+)$", outcome.stdout, re.MULTILINE)
                    kernel += int(six[1]) - int(six[0])
                self.assertEqual(counts.get(f"{group.lower()}{name}", 0), kernel, (name, outcome))
        expected = {"tcpActiveOpens": 17, "tcpPassiveOpens": 10, "tcpAttemptFails": 5,
                    "tcpOutRsts": 5, "udpInDatagrams": 35, "udpOutDatagrams": 35}
        self.assertEqual({name: counts.get(name) for name in expected}, expected, outcome)
        wrong = {name: count for name, count in counts.items() if name.startswith("<wrong>")}
        self.assertEqual(set(wrong.values()), {0}, outcome)

    def test_paging_icmp_and_timers_as_the_kernel_counts_them(self):
        files = "/proc/vmstat /proc/net/snmp /proc/net/netstat"
        probes = [f"vminfo:::{name}" for name in PAGING] + [f"mib:::{name}" for name in MIB]
        outcome = self.trace(
            f"{DECLARED} {', '.join(probes)} {{ @[probename] = sum(arg0); }} {', '.join(probes)}"
            + CHAIN % "arg0" + ' END { printa("%s %@d\\n", @); printa("<wrong> %s %@d\\n", @wrong); }',
            f"cat {files}; ping -q -c 3 -i 0.2 127.0.0.1 >/dev/null;"
            f" timers {'/dev/loop0' if self.disk else ''}; echo status $?; cat {files}")

        counts = outcome.counts()
        before, after = map(self.kernels_own, outcome.stdout.split("status 0\n"))
        told = {name: counts.get(name, 0) for name in (*PAGING, *MIB)}
        self.assertEqual(told, {name: after[word] - before[word]
                                for name, word in (PAGING | MIB).items()}, told)
        # Three echoes and six refusals, and their answers, all by way of the loopback.
        self.assertEqual((told["icmpInMsgs"], told["icmpOutMsgs"]), (12, 12), told)
        for name in ("tcpTimKeepaliveProbe", "tcpTimRetrans", *(PAGING if self.disk else ())):
            self.assertGreaterEqual(told[name], 2, (name, told))
        self.assertEqual(told["tcpTimRetransDrop"], 1, told)
        wrong = {name: count for name, count in counts.items() if name.startswith("<wrong>")}
        self.assertEqual(set(wrong.values()), {0}, wrong)

    def kernels_own(self, text):
        """The counters of /proc/vmstat, and those of /proc/net/snmp and netstat as "Tcp.InSegs"."""
        found = {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE)}
        for group, names, values in re.findall(r"^(\w+): (\D.*)\n\1: (.*)$", text, re.MULTILINE):
            for name, value in zip(names.split(), values.split()):
                found[f"{group}.{name}"] = int(value)
        return found

    def test_what_linux_does_not_count_is_refused_by_name(self):
        machine = self.enterContext(Machine(self.image, self.cpus))
        for program, reason in (
                ("vminfo:::cow_fault", "Linux does not count copies; nearest: fbt::do_wp_page:entry"),
                ("sysinfo:::trap", "nearest: vminfo:::as_fault"),
                ("mib:::tcpInDupAck", "Linux does not count it; nearest: tcp:::receive")):
            outcome = machine.run(program)

            self.assertNotEqual(outcome.status, 0, outcome)
            self.assertIn(reason, outcome.stderr, outcome)


globals().update(ringside.on_each(Counters, ringside.GUESTS))


@ringside.takes_long
class Older(guest.OfSuite, Counters, unittest.TestCase):
    """On the oldest kernel that is promised, Debian's 5.10."""

    suite = "bullseye"
    disk = False  # its modules are not in the guest, and with them the loop device


@ringside.takes_long
class Newest(guest.OfSuite, Counters, unittest.TestCase):
    """On Debian unstable's, which has counters elsewhere every few months."""

    suite = "sid"
    disk = False

if __name__ == "__main__":
    unittest.main()
