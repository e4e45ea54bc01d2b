"""The scripts of examples/, each against a guest that does a known number of things.

A script is run as its header says: --attach, -s, and Ctrl-C. Truth is the workload's own word, or
the guest's commands, or what the kernel counted: while the command ran, which all of it was traced, and
around all of the tracing.
"""

import dataclasses
import functools
import math
import pathlib
import re
import tempfile
import time
import unittest

import disks
import ringside
from made_images import Archive, initrd_with, static_program
from test_attach_qmp import Machine, end
from test_user_examples import SCRIPTS

FOLDER = ringside.ROOT / "examples"
# Its process has another name than those that the shell makes on the way.
WORK = "workload --reads 100 --writes 50 --opens 20"


# The kernel's own counters, asked before a script is started and after it has ended.
COUNTERS = "cat /proc/interrupts /proc/softirqs; grep ^cpu /proc/schedstat"


@dataclasses.dataclass
class Truth:
    """All that the guest says: its command, while it was traced, and COUNTERS before and after that."""

    said: str
    before: str
    after: str
    seconds: float  # of the host, around all of the tracing

    def count(self, number):
        """A number, or what the workload says of the call with that name."""
        return ringside.Outcome(0, self.said, "").counts()[number] if isinstance(number, str) else number


def rows(pattern, number):
    """A check that so many lines match the pattern."""
    return lambda text, _: (len(re.findall(pattern, text, re.MULTILINE)), number)


def total(pattern, text):
    """The sum of the numbers which the pattern finds in lines."""
    return sum(map(int, re.findall(pattern, text, re.MULTILINE)))


def sum_of(pattern, number):
    """A check that the numbers which the pattern finds add up to this one, or to the workload's count."""
    return lambda text, truth: (total(pattern, text), truth.count(number))


def within(found, least, most):
    """The outcome of a check of a number that has bounds."""
    return found, min(max(found, least), most)


def values(part):
    """How many values a distribution has."""
    return total(r"\|[@ ]* (\d+) *$", part)


def distribution(title, number):
    """A check that the values of a distribution are so many."""
    def check(text, truth):
        part = re.search(rf"^ *{title} *\n *value .*\n((?: +-?\d+ \|.*\n)*)", text, re.MULTILINE)
        return values(part[1]) if part else 0, truth.count(number)
    return check


def waits(probe, function, number):
    """A check that so many waits of 10 ms and more were for a lock which that function takes."""
    def check(text, _):
        parts = re.findall(rf"^ *{probe} *\n((?: .*`.*\n)+)\n* *value .*\n((?: +-?\d+ \|.*\n)*)", text, re.MULTILINE)
        found = sum(int(count) for stack, values in parts if function in stack
                    for value, count in re.findall(r"^ +(\d+) \|.* (\d+) *$", values, re.MULTILINE)
                    if int(value) >= 1 << 23)
        return found, number
    return check


def stacks(text):
    """The stacks that are printed, each with its title, and the number below it."""
    return [(stack, int(number)) for stack, number in
            re.findall(r"^((?: *\S.*\n)??(?: +\S+`\S+\n)+) +(\d+)$", text, re.MULTILINE)]


def kernels(text):
    """The rows of /proc/interrupts and /proc/softirqs, by name: their sum over both CPUs, each time."""
    found = {}
    for number, *counts, name in re.findall(r"^ *(\w+): +(\d+) +(\d+)(?: .*?(\S+))? *$", text, re.MULTILINE):
        found.setdefault(name or number, []).append(sum(map(int, counts)))
    return found


def as_the_kernel_counts(names, mine=None):
    """Checks of lines "NAME COUNT TIME": those of the names are not fewer than the kernel counted while
    the command ran, nor more than around all of the tracing. Of what nobody else does they are exact."""
    def check(name, text, truth):
        during = kernels(truth.said)[name]
        around = [kernels(part)[name][0] for part in (truth.before, truth.after)]
        found = total(rf"^{re.escape(name)} +(\d+) +\d+$", text)
        return within(found, during[-1] - during[0], around[1] - around[0])

    def check_mine(text, truth):
        wanted = {name: counts[-1] - counts[0] for name, counts in kernels(truth.said).items()
                  if re.fullmatch(mine, name) and counts[-1] != counts[0]}
        found = re.findall(rf"^({mine}) +(\d+) +\d+$", text, re.MULTILINE)
        return {name: int(count) for name, count in found}, wanted or "some"
    return [functools.partial(check, name) for name in names] + [check_mine]


def waits_for_processors(least):
    """A check of all values: the kernel counts those who run, with those who were never taken out of a queue."""
    def check(text, truth):
        times = [total(r"^cpu\d+ .* (\d+)$", part) for part in (truth.before, truth.after)]
        return within(values(text), least, times[1] - times[0])
    return check


def connecting(text, _):
    """A check of the numbers below the stacks that lead from the workload's connect()."""
    return [number for stack, number in stacks(text)
            if re.match(" *workload *\n", stack) and "`__sys_connect+0x" in stack], [3]


def slept(text, truth):
    """A check of the milliseconds that five sleeps of 100 ms took, by the guest's clock to 10 ms."""
    begin, end_of_it = (float(word) for word in re.findall(r"^(\d+\.\d+) ", truth.said, re.MULTILINE))
    found = sum(number for stack, number in stacks(text)
                if re.match(" *sleep *\n", stack) and "`do_nanosleep+0x" in stack)
    return within(found, 500, round((end_of_it - begin) * 1000) + 10)


def ran(text, truth):
    """A check of the microseconds that a program ran: its own word, but for 100 ms at its end."""
    spun = truth.count("spun")
    return within(total(r"^\d+ +numbers +0 +0 +(\d+)$", text), spun, spun + 100000)


def wakes(waker, woken):
    """A check that all wakeups of one, as many as it slept or more, are of the other."""
    def check(text, truth):
        found, everybodys = (total(rf"^{who} +{woken} +(\d+)$", text) for who in (waker, r"\S+"))
        return (found, everybodys), (max(found, truth.count(woken), 1), found)
    return check


SAMPLES = 97  # a second, as the scripts have it
# The share of samples that find one kind of work, where nothing else is done: on a busy host timers that are
# late take the rest.
MOST = 0.3
# One second of a processor in the kernel, and one in a program, each beside a processor with nothing to do.
IN_KERNEL = "workload --seconds 1 --reads 1 --read-size 1048576 --file /dev/zero"
IN_PROGRAM = "numbers spins"
IDLE = r"\w*(?:halt|idle)\w*"


def share(part, whole, least):
    """The outcome of a check of samples that have to be at least this share of the whole."""
    return within(part, math.ceil(whole * least), whole)


def sampled(pattern, seconds, processors):
    """A check of how many samples the lines have: at least a tenth of what is due in those seconds, which
    the guest counts, and at most what is due from the beginning to the end."""
    def check(text, truth):
        most = math.ceil(SAMPLES * processors * truth.seconds) + processors
        return within(total(pattern, text), SAMPLES * seconds * processors // 10, most)
    return check


def part_of(part, whole, least):
    """A check that the samples of some lines are at least this share of those of others."""
    return lambda text, _: share(total(part, text), total(whole, text), least)


def stacks_of_reads(text, _):
    """A check that of the stacks which are not idle most samples are in the spinning read."""
    busy = [(stack, number) for stack, number in stacks(text) if not re.search(rf"`{IDLE}\+0x", stack)]
    reads = [number for stack, number in busy
             if re.search(r"`vfs_read\+0x\S+\n +vmlinux`ksys_read\+0x\S+\n", stack)]
    return share(sum(reads), sum(number for _, number in busy), MOST)


TCP = "workload --tcp 3"
SLEEPS = 300
REQUESTS = 20
LOOPBACK = r"(?:::ffff:)?127\.0\.0\.1"
HELLO = "nc -l -p 5555 >/dev/null & usleep 500000; echo hello | nc 127.0.0.1 5555; wait"
FILES = "mkdir /tmp/a; echo x > /tmp/a/b; mv /tmp/a/b /tmp/a/c; rm /tmp/a/c; rmdir /tmp/a"
REQUEST = f"dd if=/dev/vdc of=/dev/null bs=4k count={REQUESTS} iflag=direct"
READS = "dd if=/dev/vdc1 of=/dev/null bs=4k count=20 iflag=direct"
LOG = ("dd if=/dev/zero of=/mnt/xfs/log bs=64k count=4 oflag=direct;"
       " dd if=/mnt/xfs/log of=/dev/null bs=4k count=10 iflag=direct")
# Where the packets go nobody answers, so each connection sends its SYN again, how often is the kernel's word.
UNANSWERED = ("resent() { grep ^Tcp: /proc/net/snmp | tail -n 1 | cut -d' ' -f 13; }; before=$(resent);"
              " ip route add 10.9.9.9 dev lo src 127.0.0.1; cd /proc/sys/net/ipv4;"
              " retries=$(cat tcp_syn_retries); echo 1 >tcp_syn_retries;"
              " for port in 80 81 81; do nc 10.9.9.9 $port </dev/null; done;"
              " echo $retries >tcp_syn_retries; ip route del 10.9.9.9;"
              " echo resent $(($(resent) - before))")
# Refused, not blocking, and of IPv6: so many of each.
CONNECTIONS = f"{TCP}; numbers connections 4"
ALONE = r"^\d+ +workload +127\.0\.0\.1 +\d+ +"
# Script: its arguments, what the guest does, and the checks.
EXAMPLES = {
    "accepts": ([], CONNECTIONS, [rows(ALONE, 3), rows(r"^\d+ +numbers +::1 +\d+ +7778$", 4),
                                  rows(r"^\d+ +numbers ", 4)]),
    "biosizes": ([], "workload --reads 20 --file /dev/loop0 --direct", [distribution("loop0 +workload", 20)]),
    "callcount": ([], WORK, [sum_of(rf"^workload +{name} +(\d+)$", name)
                             for name in ("read", "write", "openat", "close", "lseek")]),
    "callers": (["tcp_v4_connect"], TCP, [sum_of(r"^ +(\d+)$", 3), connecting]),
    "callgraph": (["tcp_v4_connect", "tcp_*"], TCP, [rows(r"-> tcp_v4_connect ", 1),
                                                    rows(r"<- tcp_v4_connect ", 1)]),
    "calltime": ([], WORK, [sum_of(r"^workload +read +(\d+) +\d+$", "read")]),
    "capabilities": ([], "numbers chroots 3",
                     [sum_of(r"^numbers +18 +0 +(\d+)$", 3), sum_of(r"^numbers +18 +1 +(\d+)$", 1)]),
    "connects": ([], CONNECTIONS, [rows(ALONE + "0$", 3), rows(r"^\d+ +numbers +127\.0\.0\.1 +9 +111$", 4),
                                   rows(r"^\d+ +numbers +127\.0\.0\.1 +7777 +115$", 4),
                                   rows(r"^\d+ +numbers ", 8)]),
    "connlatency": ([], TCP, [distribution(r"127\.0\.0\.1", 3)]),
    "diskfiles": ([], LOG, [sum_of(r"^dd +vdb +W +(\d+) /mnt/xfs/log$", 4 * 65536),
                            sum_of(r"^dd +vdb +R +(\d+) /mnt/xfs/log$", 10 * 4096)]),
    "diskio": ([], LOG, [rows(r"^ *\d+ dd +vdb +W +\d+ +65536 +\d+ /mnt/xfs/log$", 4),
                         rows(r"^ *\d+ dd +vdb +R +\d+ +4096 +\d+ /mnt/xfs/log$", 10)]),
    "disklatency": ([], READS, [distribution("vdc1 +read", 20)]),
    "diskseeks": ([], READS, [rows(r"^ +0 \|@+ +19 *$", 1), distribution("vdc1", 19)]),
    # Where no socket has the port; the file of the packets is read by test_packets.py.
    "drops": (["-x", "pcapfile=/dev/null"], "packets 9001 3 100",
              [rows(r"^\d+ +\S+ +108 bytes at vmlinux`__udp4_lib_rcv\+0x\w+: .*SKB_DROP_REASON_NO_SOCKET", 3)]),
    "errors": ([], "for n in 1 2 3; do cat /none 2>/dev/null; done; true", [rows(r"^cat +openat +2 +3$", 1)]),
    "execs": ([], "sh -c 'sleep 0.01; /bin/none'; true",
              [rows(r"^\d+ +\d+ +0 sleep 0\.01$", 1), rows(r"^\d+ +\d+ +2 /bin/none$", 1)]),
    "exits": ([], f"sh -c 'exit 3'; sh -c 'kill -9 $$'; {IN_PROGRAM}",
              [rows(r"^\d+ +sh +3 +0 +[1-9]\d*$", 1), rows(r"^\d+ +sh +0 +9 +[1-9]\d*$", 1), ran]),
    "filebytes": ([], WORK, [sum_of(r"^workload +input +vfs_read +(\d+)$", 100 * 4096),
                             sum_of(r"^workload +null +vfs_write +(\d+)$", 50 * 4096)]),
    "fslatency": ([], WORK, [distribution("(?:rootfs|tmpfs|ramfs) +vfs_read", "read")]),
    "funccount": (["tcp_v4_con*"], TCP, [rows(r"^tcp_v4_connect +3$", 1)]),
    "functime": (["tcp_v4_connect"], TCP, [distribution("tcp_v4_connect", 3)]),
    "hotfuncs": ([], IN_KERNEL, [
        sampled(r"^vmlinux`\S+ +(\d+)$", 1, 2),
        part_of(r"^vmlinux`(?:rep_stos\w*|clear_user\w*|read_zero) +(\d+)$",
                rf"^vmlinux`(?!{IDLE} )\S+ +(\d+)$", MOST)]),
    "interrupts": ([], f"cat /proc/interrupts; {REQUEST}; cat /proc/interrupts",
                   as_the_kernel_counts(["ttyS1"], r"virtio2-req\.\d")),
    "iosizes": ([], WORK, [distribution("workload +read", "read"), distribution("workload +write", "write")]),
    "lifetimes": ([], "sleep 0.1; true", [distribution("sleep", 1)]),
    # Five waits of 20 ms and more for the lock of a file's position (locks.c).
    "lockwaits": ([], "locks", [waits("adaptive-block", "fdget_pos", 5)]),
    "modules": ([], "rmmod loop 2>/dev/null; losetup -d /dev/loop0; until rmmod loop 2>/dev/null; do usleep 10000; done;"
                    " insmod /modules/loop.ko && losetup /dev/loop0 /data/disk",
                [rows(r"^\d+ +rmmod +unload +loop$", 1), rows(r"^\d+ +insmod +load +loop$", 1)]),
    "newprocs": ([], "workload --processes 4 --threads 3", [rows(r"^workload +process +3$", 1),
                                                           rows(r"^workload +thread +8$", 1)]),
    "offcpu": ([], "cat /proc/uptime; for n in 1 2 3 4 5; do sleep 0.1; done; cat /proc/uptime", [slept]),
    "oncpu": ([], f"{IN_KERNEL}; {IN_PROGRAM}", [
        sampled(r"^.* +(\d+)$", 2, 2), sampled(r"^(?:workload|numbers) .* +(\d+)$", 2, 1),
        part_of(r"^workload +\d+ kernel +(\d+)$", r"^workload .* (\d+)$", 0.75),
        part_of(r"^numbers +\d+ user +(\d+)$", r"^numbers .* (\d+)$", 0.75),
        part_of(r"^swapper/\d +0 kernel +(\d+)$", r"^swapper.* (\d+)$", 1)]),
    "oomkills": ([], "tail /dev/zero; true", [rows(r"asked for memory; tail \(\d+\) is killed$", 1)]),
    "opens": ([], WORK, [lambda text, truth: (len(re.findall(r"^\d+ +workload +0 /d", text, re.MULTILINE)),
                                              truth.count("openat"))]),
    "pagefaults": ([], "numbers faults 500 /dev/loop0", [sum_of(r"^faulting +(\d+) +\d+$", "faults"),
                                                        sum_of(r"^faulting +\d+ +(\d+)$", "major")]),
    "removals": ([], FILES, [rows(r"^\d+ +mv +rename +b -> c$", 1), rows(r"^\d+ +rm +remove +c$", 1),
                             rows(r"^\d+ +rmdir +rmdir +a$", 1)]),
    "reqlatency": ([], "workload --reads 20 --file /dev/loop0 --direct", [distribution("loop0", 20)]),
    "retransmits": ([], UNANSWERED, [rows(r"^127\.0\.0\.1 +\d+ +10\.9\.9\.9 +80 +[1-9]\d*$", 1),
                                     rows(r"^127\.0\.0\.1 +\d+ +10\.9\.9\.9 +81 +[1-9]\d*$", 2),
                                     sum_of(r"^127\.0\.0\.1 +\d+ +10\.9\.9\.9 +8\d +(\d+)$", "resent")]),
    "runqlat": ([], f"numbers sleeps {SLEEPS}", [waits_for_processors(SLEEPS)]),
    "signals": ([], "sh -c 'kill -9 $$'; true", [rows(r"^(\d+) +sh +\1 +sh +9$", 1)]),
    "sleeps": ([], "sleep 0.1", [distribution("sleep", 1)]),
    "slowcalls": (["100000"], "sleep 0.2", [rows(r"^\d+ +sleep +(clock_)?nanosleep +\d+$", 1)]),
    "softirqs": ([], f"cat /proc/softirqs; {TCP}; cat /proc/softirqs",
                 as_the_kernel_counts(["TIMER", "SCHED", "RCU"], "NET_RX")),
    "stacks": ([], IN_KERNEL, [sampled(r"^ +(\d+)$", 1, 2), stacks_of_reads]),
    "tcpbytes": ([], HELLO,
                 [rows(r"^sent +127\.0\.0\.1 +5555 +6$", 1), rows(r"^received +127\.0\.0\.1 +5555 +0$", 1)]),
    "tcplife": ([], HELLO, [rows(rf"^{LOOPBACK} +[1-9]\d* {LOOPBACK} +5555 +6 +0 +\d+$", 1),
                            rows(rf"^{LOOPBACK} +5555 {LOOPBACK} +[1-9]\d* +0 +6 +\d+$", 1)]),
    "wakeups": ([], f"numbers sleeps {SLEEPS}; numbers pair {SLEEPS}",
                [sum_of(r"^\S+ +numbers +(\d+)$", SLEEPS), wakes("pong", "ping"), wakes("ping", "pong")]),
    # Each of them is work for each of the two processors.
    "worktime": ([], "for n in 1 2 3 4 5; do echo >/proc/sys/vm/stat_refresh; done",
                 [sum_of(r"^vmlinux`refresh_vm_stats +(\d+) +\d+$", 5 * 2)]),
}


class Examples(unittest.TestCase):
    """All scripts on one guest of each kernel, one after another."""

    def check_all(self, image):
        """Runs them; what one of them keeps from the next is nothing."""
        archive = Archive()
        for program in ("locks", "numbers", "packets"):
            archive.file(f"bin/{program}", static_program(f"{program}.c"), 0o755)
        initrd = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "initrd")
        initrd.write_bytes(initrd_with(image, archive))
        with disks.disks() as options, \
                Machine(image, cpus=2, options=options, initrd=initrd) as machine:
            self.assertEqual(machine.port.run(disks.MOUNT)[0], 0)
            for name, (arguments, command, checks) in EXAMPLES.items():
                with self.subTest(f"{name} on {image}"):
                    self.check(machine, name, arguments, command, checks)

    def check(self, machine, name, arguments, command, checks):
        """Runs one script while the guest does something, up to Ctrl-C."""
        before, begin = machine.port.run(COUNTERS)[1].decode(), time.monotonic()
        with machine.trace(None, ["-s", FOLDER / f"{name}.d", *arguments]) as running:
            running.read_until(lambda text: "\n" in text)
            status, said = machine.port.run(command)
            outcome = running.finish() if name == "callgraph" else end(running)
        seconds, after = time.monotonic() - begin, machine.port.run(COUNTERS)[1].decode()
        self.assertEqual((status, outcome.status), (0, 0), (said, outcome))
        truth = Truth(said.decode(), before, after, seconds)
        for check in checks:
            found, wanted = check(outcome.stdout, truth)
            self.assertEqual(found, wanted, (outcome, truth))

    @ringside.takes_long
    def test_debian_6_1(self):
        self.check_all("debian-6.1")

    def test_debian_6_12(self):
        self.check_all("debian-6.12")

    def test_each_has_a_test_a_header_and_a_sample(self):
        names = {path.stem for path in FOLDER.glob("*.d")}
        self.assertEqual(names, {*EXAMPLES, *SCRIPTS})
        for name in names:
            text = (FOLDER / f"{name}.d").read_text()
            self.assertRegex(text, rf"^#!/usr/bin/env -S ringside -s\n/\*\n \* {name}\.d - .*\.\n \*\n"
                                   rf" \* USAGE: ringside --attach TARGET -s {name}\.d", name)
            sample = (FOLDER / f"{name}.txt").read_text()
            self.assertTrue(sample.startswith(f"$ ringside --attach TARGET -s {name}.d"), name)


if __name__ == "__main__":
    unittest.main()
