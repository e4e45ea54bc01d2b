"""The stable providers against what programs did and what the kernel counted, on every guest."""

import re
import unittest

import guest
import ringside
from made_images import image_with_programs


class Stable:
    """The tests; the classes at the end say on which guest. One boot each."""

    image = ""
    cpus = 0
    lacks = ()  # the probes that this kernel has no place for

    def trace(self, program, command, *options, environment=None):
        """Runs a program to the command's end, which has to be a good one."""
        outcome = ringside.run(program, image=self.image, cpus=self.cpus, command=command,
                               options=options, environment=environment)
        self.assertEqual(outcome.status, 0, outcome)
        return outcome

    def test_processes_and_threads_from_their_creation_to_their_end(self):
        outcome = self.trace(
            "proc:::create { @create[execname] = count(); }"
            " proc:::lwp-create { @lwp_create[execname] = count(); }"
            " proc:::start { @start[execname] = count(); }"
            " proc:::lwp-start { @lwp_start[execname] = count(); }"
            " proc:::exit { @exit[execname, args[0]] = count(); }"
            " proc:::lwp-exit { @lwp_exit[execname] = count(); }"
            ' END { printa("create %s %@d\\n", @create); printa("lwp-create %s %@d\\n", @lwp_create);'
            ' printa("start %s %@d\\n", @start); printa("lwp-start %s %@d\\n", @lwp_start);'
            ' printa("exit %s %d %@d\\n", @exit); printa("lwp-exit %s %@d\\n", @lwp_exit); }',
            "workload --processes 4 --threads 3 --getppid 1; true", "-q")

        counts = outcome.counts()
        # The shell makes the workload's first process, that makes three more; each makes 2 threads.
        expected = {"create sh": 1, "create workload": 3, "lwp-create workload": 3 + 4 * 2,
                    "start sh": 1, "start workload": 3, "lwp-start workload": 3 + 4 * 2,
                    "exit workload 1": 4, "lwp-exit workload": 4 * 3}
        self.assertEqual({name: counts.get(name) for name in expected}, expected, outcome)

    def test_a_fork_comes_back_in_parent_and_child(self):
        returns = "syscall::clone*:return, syscall::*fork:return"
        outcome = self.trace(
            f'{returns} /pid == $target && arg0 > 0/ {{ @["parent"] = count(); }}'
            f' {returns} /ppid == $target && arg0 == 0 && errno == 0/ {{ @["child"] = count(); }}'
            ' proc:::create /pid == $target/ { @["created"] = count(); }',
            "for n in 1 2 3 4 5 6 7; do (exit 0); done; exit 0", "-q")

        counts = outcome.counts()
        self.assertEqual(counts, {"parent": 7, "child": 7, "created": 7}, outcome)

    def test_what_is_executed_and_signalled(self):
        outcome = self.trace(
            'proc:::exec { printf("exec %s by %s\\n", stringof(args[0]), execname); }'
            ' proc:::exec-failure { printf("failure %d\\n", args[0]); }'
            ' proc:::exec-success { printf("success %s %d\\n", execname, curpsinfo->pr_pid == pid); }'
            " proc:::signal-send /args[2] == SIGKILL || args[2] == SIGUSR1/"
            ' { printf("send %d %d\\n", args[2], args[1]->pr_pid == $target); }'
            " proc:::exit /args[0] != CLD_EXITED/"
            ' { printf("killed %d\\n", args[0]); }',
            "/data/nothing; workload --getppid 1; trap : USR1; kill -USR1 $$;"
            " (kill -KILL $(exec sh -c 'echo $PPID'));"
            " echo '|/bin/busybox true' >/proc/sys/kernel/core_pattern; sh -c 'kill -SEGV $$'; true",
            "-q")

        lines = outcome.stdout.splitlines()
        for line, times in (("exec /data/nothing by sh", 1), ("failure 2", 1),
                            ("exec /bin/workload by sh", 1), ("success workload 1", 1),
                            ("send 10 1", 1), ("killed 2", 1)):
            self.assertEqual(lines.count(line), times, (line, outcome))
        # The kernel executes a program itself, in a thread of its own.
        by_kernel = [line for line in lines if line.startswith("exec /bin/busybox by ")]
        self.assertEqual(len(by_kernel), 1, outcome)

    def test_a_thread_is_on_a_cpu_as_often_as_the_kernel_counts(self):
        outcome = self.trace(
            "sched:::on-cpu { on[tid]++; } sched:::off-cpu { off[tid]++; next[args[0]->pr_lwpid]++; }"
            " sched:::sleep { slept[tid]++; } sched:::preempt { preempted[tid]++; }"
            ' sched:::wakeup { @["<woken>"] = count(); }'
            ' proc:::lwp-exit /execname == "workload"/'
            ' { printf("<on> %d %d %d %d\\n", on[tid], off[tid] + 1, next[tid],'
            " curthread->nvcsw + curthread->nivcsw + 1);"
            ' printf("<off> %d %d %d %d\\n", slept[tid], curthread->nvcsw, preempted[tid],'
            " curthread->nivcsw); }"
            " sched:::enqueue { @queued[args[2]->cpu_id] = count(); }"
            ' sched:::enqueue /args[1]->pr_fname == "workload"/ { @["<enqueued>"] = count(); }'
            ' sched:::dequeue /args[1]->pr_fname == "workload"/ { @["<dequeued>"] = count(); }'
            ' sched:::tick /args[1]->pr_pid != pid || args[0]->pr_lwpid != tid/'
            ' { @["<strange>"] = count(); } sched:::tick { @["<ticks>"] = count(); }'
            ' END { printa("cpu %d %@d\\n", @queued); printa("%s %@d\\n", @); }',
            "workload --getppid 20000 --processes 3 --threads 2; true", "-q")

        # The kernel counts how often a thread left, and it left once less than it came.
        threads = re.findall(r"^<on> (\d+) (\d+) (\d+) (\d+)$", outcome.stdout, re.MULTILINE)
        self.assertEqual(len(threads), 6, outcome)
        for on, left, chosen, kernels in threads:
            self.assertEqual((on, left, chosen), (kernels, kernels, kernels), outcome)
        threads = re.findall(r"^<off> (\d+) (\d+) (\d+) (\d+)$", outcome.stdout, re.MULTILINE)
        self.assertEqual(len(threads), 6, outcome)
        for slept, voluntary, preempted, involuntary in threads:
            self.assertEqual((slept, preempted), (voluntary, involuntary), outcome)
        counts = outcome.counts()
        self.assertGreaterEqual(counts["<enqueued>"], 5, outcome)
        self.assertGreaterEqual(counts["<dequeued>"], 5, outcome)
        self.assertGreater(counts["<ticks>"], 0, outcome)
        self.assertIn("<woken>", counts, outcome)
        self.assertNotIn("<strange>", counts, outcome)
        cpus = {name for name in counts if name.startswith("cpu ")}
        self.assertLessEqual(cpus, {f"cpu {cpu}" for cpu in range(self.cpus)}, outcome)
        self.assertIn("cpu 0", cpus, outcome)

    def test_a_wakeup_is_of_the_thread_that_wakes_on_its_cpu(self):
        environment = self.enterContext(image_with_programs(self.image, "numbers"))
        counts = self.trace(
            'sched:::wakeup /args[1]->pr_fname == "ping" || args[1]->pr_fname == "pong"/'
            " { @[execname, cpu, args[1]->pr_fname,"
            " args[0]->pr_state == SSLEEP || args[0]->pr_state == SONPROC] = count(); }"
            ' END { printa("<by> %s %d %s %d %@d\\n", @); }',
            "numbers pair 1000", "-q", environment=environment).counts()

        wakeups = {name: count for name, count in counts.items() if name.startswith("<by>")}
        by_pong, by_ping = f"<by> pong {int(self.cpus > 1)} ping 1", "<by> ping 0 pong 1"
        self.assertEqual(set(wakeups), {by_pong, by_ping}, counts)
        # A thread that is woken on its way to sleep has not slept.
        self.assertGreaterEqual(wakeups[by_pong], counts["ping"], counts)
        self.assertGreaterEqual(wakeups[by_ping], counts["pong"], counts)
        # The next byte may be there before a thread comes to sleep, most of the time.
        self.assertGreater(counts["ping"] + counts["pong"], 20, counts)

    def unless_lacking(self, part):
        """A part of a program, or nothing when this kernel lacks a probe of it."""
        return "" if any(f":::{name}" in part for name in self.lacks) else part

    def trace_known(self, program):
        """Runs it beside stable.c, whose numbers are known."""
        environment = self.enterContext(image_with_programs(self.image, "stable"))
        command = ("grep Tcp: /proc/net/snmp; stable; echo status $?; grep Tcp: /proc/net/snmp;"
                   " true")
        outcome = self.trace(program, command, "-q", environment=environment)
        self.assertIn("status 0", outcome.stdout.splitlines(), outcome)
        return outcome

    def test_what_a_program_asks_of_the_scheduler_and_waits_for(self):
        counts = self.trace_known(
            'sched:::change-pri /args[1]->pr_fname == "stable"/'
            ' { @["pri", args[2] - args[0]->pr_pri] = count(); }'
            ' sched:::surrender /args[1]->pr_fname == "stable"/ { @["yield", 0] = count(); }'
            ' proc:::signal-clear { @["clear", args[0]] = count(); }'
            ' proc:::signal-send /args[2] == SIGUSR2/ { @["send", args[0]->pr_lwpid == tid] = count(); }'
            ' END { printa("%s %d %@d\\n", @); }').counts()

        expected = {"pri 1": 4, "yield 0": 7, "clear 12": 5, "send 1": 5}
        self.assertEqual({name: counts.get(name) for name in expected}, expected, counts)

    def test_a_thread_that_yields_is_switched_away_or_remains(self):
        if "remain-cpu" in self.lacks:
            self.skipTest("this kernel has no remain-cpu")
        counts = self.trace_known(
            'sched:::surrender /execname == "stable"/ { self->yields = 1; @["<yields>"] = count(); }'
            ' sched:::off-cpu /self->yields/ { self->yields = 0; @["<ended>"] = count(); }'
            ' sched:::remain-cpu /self->yields/ { self->yields = 0; @["<ended>"] = count();'
            ' @["<remained>"] = count(); }'
            ' sched:::remain-cpu /pid == 0/ { @["<idle>"] = count(); }'
            ' END { printa("%s %@d\\n", @); }').counts()

        self.assertEqual((counts.get("<yields>"), counts.get("<ended>")), (7, 7), counts)
        self.assertGreater(counts.get("<remained>", 0), 0, counts)
        self.assertNotIn("<idle>", counts)

    def test_a_thread_that_leaves_its_cpu_is_in_the_state_that_it_leaves_for(self):
        counts = self.trace(
            'sched:::off-cpu { @[curlwpsinfo->pr_state == SRUN && curlwpsinfo->pr_sname == 82 ?'
            ' "<runs>" : "<sleeps>"] = count(); }'
            ' sched:::off-cpu /curlwpsinfo->pr_state == SSLEEP/ { @["<asleep>"] = count(); }'
            ' sched:::preempt { @["<preempted>"] = count(); } sched:::sleep { @["<slept>"] = count(); }'
            ' END { printa("%s %@d\\n", @); }',
            "workload --getppid 2000 --processes 3 --threads 2; sleep 0.1; true", "-q").counts()

        self.assertEqual(counts["<runs>"], counts["<preempted>"], counts)
        self.assertEqual(counts["<sleeps>"], counts["<slept>"], counts)
        self.assertGreater(counts["<asleep>"], 5, counts)

    def test_packets_and_connections(self):
        outcome = self.trace_known(
            "tcp:::send { @[probename, args[2]->ip_ver] = count(); }"
            " tcp:::receive { @[probename, args[2]->ip_ver] = count(); }"
            " tcp:::send /args[2]->ip_plength > args[4]->tcp_offset/"
            ' { @bytes[args[2]->ip_ver] = sum(args[2]->ip_plength - args[4]->tcp_offset); }'
            " tcp:::connect-request /args[3]->tcps_rport == args[4]->tcp_dport/"
            " { @[probename, args[2]->ip_ver] = count(); }"
            f" tcp:::connect-established {self.unless_lacking(', tcp:::connect-refused')}"
            " /args[3]->tcps_lport == args[4]->tcp_dport/"
            " { @[probename, args[2]->ip_ver] = count(); }"
            " tcp:::connect-established /args[3]->tcps_local && args[3]->tcps_cwnd_ssthresh == 0x7fffffff/"
            ' { @["local", args[2]->ip_ver] = count(); }'
            " tcp:::accept-established /args[4]->tcp_dport == args[3]->tcps_lport/"
            " { @[probename, args[2]->ip_ver] = count(); }"
            " tcp:::accept-refused /args[4]->tcp_dport == 9 && (args[4]->tcp_flags & TH_SYN) != 0/"
            " { @[probename, args[2]->ip_ver] = count(); }"
            ' udp:::send /args[4]->udp_dport == 7777/ { @["udp-send", args[4]->udp_length] = count(); }'
            " udp:::receive /args[3]->udps_lport == 7777/"
            ' { @["udp-receive", args[4]->udp_length] = count(); }'
            ' ip:::send /args[3]->if_name == "lo" && args[3]->if_local/'
            ' { @["ip-send", args[4]->ipv4_protocol + args[5]->ipv6_nexthdr] = count(); }'
            ' ip:::receive /args[2]->ip_saddr == "127.0.0.1" || args[2]->ip_daddr == "::1"/'
            ' { @["ip-receive", args[4]->ipv4_protocol + args[5]->ipv6_nexthdr] = count(); }'
            ' END { printa("%s %d %@d\\n", @); printa("bytes %d %@d\\n", @bytes); }')

        counts = outcome.counts()
        expected = {"connect-request 4": 6 + 3 + 2, "connect-request 6": 4 + 2,
                    "connect-established 4": 6 + 2, "connect-established 6": 4,
                    "local 4": 6 + 2, "local 6": 4,  # and without a threshold yet
                    "accept-established 4": 6, "accept-established 6": 4,
                    "connect-refused 4": 3, "connect-refused 6": 2,
                    "accept-refused 4": 3, "accept-refused 6": 2,
                    "bytes 4": 6 * 1000, "bytes 6": 4 * 1000,
                    "udp-send 108": 20, "udp-send 58": 15,
                    "udp-receive 108": 20, "udp-receive 58": 15,
                    "ip-send 17": 35, "ip-receive 17": 35}
        expected = {name: count for name, count in expected.items() if name.split()[0] not in self.lacks}
        self.assertEqual({name: counts.get(name) for name in expected}, expected, outcome)
        # The kernel's own InSegs and OutSegs, which count both versions.
        rows = re.findall(r"^Tcp: (\d.*)$", outcome.stdout, re.MULTILINE)
        before, after = ([int(word) for word in row.split()[9:11]] for row in rows)
        received, sent = (b - a for a, b in zip(before, after))
        # OutSegs is without what was sent before, as the second SYN of a simultaneous open was.
        self.assertEqual(counts["send 4"] + counts["send 6"], sent + 2, outcome)
        self.assertEqual(counts["receive 4"] + counts["receive 6"], received, outcome)
        self.assertEqual(counts["ip-send 6"], sent + 2, outcome)
        self.assertEqual(counts["ip-receive 6"], received, outcome)

    def test_signals_that_are_handled_and_faults(self):
        outcome = self.trace_known(
            'proc:::signal-handle /execname == "stable"/'
            ' { @["handle", args[0], args[1]->si_pid == pid && args[1]->si_signo == args[0] &&'
            ' args[2] > 1] = count(); }'
            ' proc:::fault /execname == "stable"/ { @["fault", args[0], args[1]->si_signo] = count(); }'
            ' proc:::fault /execname == "stable" && args[0] == FLTBOUNDS/'
            ' { printf("<address> %d\\n", args[1]->si_addr); }'
            ' END { printa("%s %d %d %@d\\n", @); }')

        counts = outcome.counts()
        expected = {"handle 10 1": 6, "fault 6 11": 1, "fault 5 11": 1, "fault 8 8": 1,
                    "fault 1 4": 1, "fault 3 5": 1, "<address>": 16}
        found = {name: count for name, count in counts.items()
                 if name.split()[0] in ("handle", "fault", "<address>")}
        self.assertEqual(found, expected, outcome)

    def test_states_of_connections_and_packets_that_are_dropped(self):
        outcome = self.trace_known(
            "tcp:::state-change { @[args[5]->tcps_state, args[3]->tcps_state] = count(); }"
            " tcp:::state-change /args[1]->cs_cid == 0 || args[3]->tcps_addr == 0/"
            " { @[-1, -1] = count(); }"
            + self.unless_lacking(
                ' ip:::drop-in /args[2]->ip_saddr == "127.0.0.1" && args[3]->if_name == "lo"/'
                " { @[-2, args[4]->ipv4_protocol] = count(); }") +
            ' END { printa("<state> %d %d %@d\\n", @); }')

        counts = outcome.counts()
        # 6 and 4 connections, that the client ends first; 3 and 2 that are refused; 2 of sockets with
        # themselves, that open and close from both ends at once.
        closed, sent, received, established, waits_1, waits_2, wait, last = 7, 2, 3, 1, 4, 5, 8, 9
        closing = 11
        expected = {(closed, sent): 17, (sent, established): 10, (sent, closed): 5,
                    (sent, received): 2, (waits_1, closing): 2, (closing, closed): 2,
                    (received, established): 12, (established, waits_1): 12,
                    (waits_1, waits_2): 10, (waits_2, closed): 10, (established, wait): 10,
                    (wait, last): 10, (last, closed): 10}
        if "drop-in" not in self.lacks:
            expected[-2, 200] = 8
        self.assertEqual({key: counts.get("<state> %d %d" % key) for key in expected}, expected,
                         outcome)
        self.assertNotIn("<state> -1 -1", counts, outcome)

    def test_they_are_listed_with_their_arguments_and_those_that_are_missing(self):
        outcome = ringside.run("proc:::create, sched:::", image=self.image, cpus=self.cpus,
                               options=["-l", "-v"])

        self.assertEqual(outcome.status, 0, outcome)
        create = outcome.stdout.split(" create\n")[1].split("sched")[0]
        self.assertIn("args[0]: psinfo_t *", create, outcome)
        self.assertIn("Evolving", create, outcome)
        tick = outcome.stdout.split(" tick\n")[1]
        self.assertRegex(tick, r"args\[0\]: lwpsinfo_t \*\w*\n\t\targs\[1\]: psinfo_t \*", outcome)
        for name in ("on-cpu", "enqueue", "dequeue", "change-pri", "surrender"):
            self.assertIn(f" {name}\n", outcome.stdout, outcome)


globals().update(ringside.on_each(Stable, ringside.GUESTS))


@ringside.takes_long
class Older(guest.OfSuite, Stable, unittest.TestCase):
    """On the oldest kernel that is promised, Debian's 5.10."""

    suite = "bullseye"
    lacks = ("remain-cpu", "connect-refused", "drop-in")

    def test_what_it_lacks_is_refused_with_its_reason(self):
        for name, why in (("sched:::remain-cpu", "__schedule has no ftrace site"),
                          ("tcp:::connect-refused", "takes no struct sk_buff * as parameter 2"),
                          ("ip:::drop-in", "has 2 arguments, and not reason"),
                          ("lockstat:::spin-release", "has no function _raw_spin_unlock")):
            with self.subTest(name):
                outcome = ringside.run(f"{name} {{ }}", image=self.image)
                self.assertEqual(outcome.status, 1, outcome)
                self.assertIn(why, outcome.stderr.splitlines()[-3], outcome)


@ringside.takes_long
class Newest(guest.OfSuite, Stable, unittest.TestCase):
    """On Debian unstable's, which has functions elsewhere every few months."""

    suite = "sid"

if __name__ == "__main__":
    unittest.main()
