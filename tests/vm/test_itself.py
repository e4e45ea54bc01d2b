"""The stable providers' types against what a program says of itself (itself.c), on every guest; and the
probes that its locks, its memory and its ignored signals come by.
"""

import re
import unittest

import ringside
from made_images import image_with_programs

PHASES = 'int phase; '
NEXT = ' syscall::getppid:entry /execname == "itself"/ { phase++; }'

# In the words of itself.c.
SOMEBODY = """
syscall::getppid:entry /execname == "itself" && phase == 0/
{
	printf("<ids> %d %d %d %d\\n", curpsinfo->pr_pid, curpsinfo->pr_ppid, curpsinfo->pr_pgid,
	    curpsinfo->pr_sid);
	printf("<owners> %d %d %d %d\\n", curpsinfo->pr_uid, curpsinfo->pr_euid, curpsinfo->pr_gid,
	    curpsinfo->pr_egid);
	printf("<lwps> %d\\n", curpsinfo->pr_nlwp);
	printf("<class> %s %d\\n", curlwpsinfo->pr_clname, curlwpsinfo->pr_nice);
	printf("<tty> %d %d\\n", getmajor(curpsinfo->pr_ttydev), getminor(curpsinfo->pr_ttydev));
	printf("<children> %d\\n", curpsinfo->pr_ctime.tv_sec * 1000000 +
	    curpsinfo->pr_ctime.tv_nsec / 1000);
	printf("<used> %d\\n", curlwpsinfo->pr_time.tv_sec * 1000000000 + curlwpsinfo->pr_time.tv_nsec);
	printf("<constant> %d %d %d %d %d\\n", curlwpsinfo->pr_onpro == cpu,
	    curpsinfo->pr_addr == (uintptr_t)curthread, curlwpsinfo->pr_addr == curpsinfo->pr_addr,
	    curlwpsinfo->pr_state == SONPROC && curlwpsinfo->pr_sname == 79,
	    curpsinfo->pr_lwp.pr_name == "itself" && curpsinfo->pr_fname == "itself");
	printf("<none> %d %d %d %d %d %d %d %d\\n", curpsinfo->pr_nzomb, curpsinfo->pr_taskid,
	    curpsinfo->pr_projid, curpsinfo->pr_poolid, curpsinfo->pr_contract, curlwpsinfo->pr_wchan,
	    curlwpsinfo->pr_bindpro, curlwpsinfo->pr_bindpset);
}
proc:::exit /execname == "itself"/ { @["status", curpsinfo->pr_wstat] = count(); }
proc:::signal-handle /execname == "itself" && args[0] == SIGCHLD/
{
	printf("<about> %d %d %d %d\\n", args[1]->si_signo, args[1]->si_errno, args[1]->si_code,
	    args[1]->si_status);
	@["of a child", args[1]->si_uid] = count();
}
proc:::signal-handle /execname == "itself" && args[0] == SIGUSR1 && args[1]->si_pid == pid/
{
	@["queued", args[1]->si_code] = count();
}
proc:::signal-discard /args[2] == SIGUSR2 && args[1]->pr_pid == pid && args[0]->pr_lwpid == tid/
{
	@["discarded", args[2]] = count();
}
ERROR { @["error", 0] = count(); }
END { printa("<%s> %d %@d\\n", @); }
"""

LOCKS = """
lockstat:::rw-downgrade /execname == "itself" && phase == 2 && args[0] == &curthread->mm->mmap_lock/
{
	@["downgrades", 0] = count();
}
lockstat:::adaptive-acquire-error /execname == "itself" && phase == 3/
{
	@["interrupted", arg1] = count();
}
ERROR { @["error", 0] = count(); }
END { printa("<%s> %d %@d\\n", @); }
"""

PACKETS = """
ip:::receive /args[4]->ipv4_protocol == IPPROTO_UDP/
{
	printf("<ipv4> %d %d %d %d %d %d %d %d %d %d\\n", args[4]->ipv4_ver, args[4]->ipv4_ihl,
	    args[4]->ipv4_tos, args[4]->ipv4_length, args[4]->ipv4_ident, args[4]->ipv4_flags,
	    args[4]->ipv4_offset, args[4]->ipv4_ttl, args[4]->ipv4_protocol, args[4]->ipv4_checksum);
	printf("<ipv4 text> %s %s %s %d %d %d\\n", args[4]->ipv4_protostr, args[4]->ipv4_saddr,
	    args[4]->ipv4_daddr, args[4]->ipv4_src == htonl(0x7f000001),
	    args[4]->ipv4_dst == htonl(0x7f000001), args[4]->ipv4_hdr->ipha_ttl);
	printf("<packet> %d %s %d\\n", ((struct sk_buff *)args[0]->pkt_addr)->len, args[3]->if_name,
	    ((struct net_device *)args[3]->if_addr)->ifindex);
}
udp:::receive /args[2]->ip_ver == 4/
{
	printf("<udp> %d %d %d %d\\n", args[4]->udp_sport, args[4]->udp_dport, args[4]->udp_length,
	    args[4]->udp_checksum);
	printf("<udp socket> %s %d %s %d %d %d\\n", args[3]->udps_laddr, args[3]->udps_lport,
	    args[3]->udps_raddr, args[3]->udps_rport, args[3]->udps_addr == args[1]->cs_addr,
	    ntohs(args[4]->udp_hdr->uha_length));
}
ip:::receive /args[5]->ipv6_nexthdr == IPPROTO_UDP/
{
	printf("<ipv6> %d %d %d %d %d %s %d %s %s %d %d %d\\n", args[5]->ipv6_ver, args[5]->ipv6_tclass,
	    args[5]->ipv6_flow, args[5]->ipv6_plen, args[5]->ipv6_nexthdr, args[5]->ipv6_nextstr,
	    args[5]->ipv6_hlim, args[5]->ipv6_saddr, args[5]->ipv6_daddr,
	    ((uint8_t *)args[5]->ipv6_src)[15], ((uint8_t *)args[5]->ipv6_dst)[15],
	    args[5]->ipv6_hdr->ip6_hlim);
}
tcp:::send /args[3]->tcps_lport == 7102 || args[3]->tcps_rport == 7102/
{
	@["sent", 0] = count();
}
tcp:::send /(args[3]->tcps_lport == 7102 || args[3]->tcps_rport == 7102) &&
    (args[4]->tcp_flags & (TH_SYN | TH_ACK | TH_RST)) == TH_ACK &&
    (args[4]->tcp_window << args[3]->tcps_rcv_ws != args[3]->tcps_rwnd ||
    args[4]->tcp_ack != args[3]->tcps_rack || args[4]->tcp_urgent != 0 ||
    (args[4]->tcp_hdr->th_fport[0] << 8 | args[4]->tcp_hdr->th_fport[1]) != args[3]->tcps_rport)/
{
	@["another window", 0] = count();
}
syscall::getppid:entry /execname == "itself" && phase == 3/
{
	this->sock = ((struct socket *)curthread->files->fdt->fd[20]->private_data)->sk;
	printf("<tcp> %d %d %s %s %d %d\\n", TCP->tcps_lport, TCP->tcps_rport, TCP->tcps_laddr,
	    TCP->tcps_raddr, TCP->tcps_snxt, TCP->tcps_rnxt);
	printf("<limits> %d %d %d %d %d\\n", TCP->tcps_mss, TCP->tcps_cwnd, TCP->tcps_snd_ws,
	    TCP->tcps_rcv_ws, TCP->tcps_rto);
}
ERROR { @["error", 0] = count(); }
END { printa("<%s> %d %@d\\n", @); }
""".replace("TCP->", "xlate <tcpsinfo_t *> (this->sock)->")


class Itself:
    """The tests; the classes at the end say on which guest."""

    image = ""
    cpus = 0

    def trace(self, program):
        """Runs it beside itself.c; what both have said, by name."""
        environment = self.enterContext(image_with_programs(self.image, "itself"))
        outcome = ringside.run(PHASES + program + NEXT, image=self.image, cpus=self.cpus,
                               command="itself; echo status $?", options=["-q"], environment=environment)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertIn("status 0", outcome.stdout.splitlines(), outcome)
        own = dict(re.findall(r"^(\w+) (.*)$", outcome.stdout, re.MULTILINE))
        found = dict(re.findall(r"^<(\w+(?: [a-z]+)*)> (.*)$", outcome.stdout, re.MULTILINE))
        return own, found, outcome

    def test_of_processes_and_signals(self):
        own, found, outcome = self.trace(SOMEBODY)

        for name in ("ids", "owners", "lwps", "class", "tty", "about"):
            self.assertEqual(found[name], own[name], (name, outcome))
        # The kernel's sum is of user mode and the kernel, and each of the two is cut to microseconds.
        self.assertLessEqual(abs(int(found["children"]) - int(own["children"])), 2, outcome)
        self.assertLessEqual(int(found["used"]), int(own["used"]) + 1_000_000_000, outcome)
        self.assertGreater(int(found["used"]), int(own["used"]) // 2, outcome)
        self.assertEqual(found["constant"], "1 1 1 1 1", outcome)
        self.assertEqual(found["none"], "0 0 0 0 0 0 -1 -1", outcome)
        rows = outcome.counts()
        queued = -1  # SI_QUEUE
        expected = {"<status> 1792": 1, "<status> 2304": 1, "<status> 0": 6, "<of a child> 0": 1,
                    f"<queued> {queued}": 1, "<discarded> 12": 5}
        self.assertEqual({name: rows.get(name) for name in expected}, expected, outcome)
        self.assertNotIn("<error> 0", rows, outcome)

    def test_of_locks_that_are_downgraded_or_not_got(self):
        rows = self.trace(LOCKS)[2].counts()

        interrupted = 4  # EINTR
        rows = {name: count for name, count in rows.items() if name.startswith("<")}
        self.assertEqual(rows, {"<downgrades> 0": 12, f"<interrupted> {interrupted}": 3})

    def test_of_packets_and_sockets(self):
        own, found, outcome = self.trace(PACKETS)

        for name in ("ipv4", "udp", "tcp", "limits"):
            self.assertEqual(found.get(name), own[name], (name, outcome))
        self.assertEqual(found["ipv4 text"], "UDP 127.0.0.1 127.0.0.1 1 1 33", outcome)
        self.assertEqual(found["packet"], "78 lo 1", outcome)
        self.assertEqual(found["udp socket"], "127.0.0.1 7102 127.0.0.1 7101 1 58", outcome)
        self.assertEqual(found["ipv6"], "6 40 0 38 17 UDP 44 ::1 ::1 1 1 44", outcome)
        rows = outcome.counts()
        self.assertGreaterEqual(rows["<sent> 0"], 3 + 3, outcome)
        for name in ("<another window> 0", "<error> 0"):
            self.assertNotIn(name, rows, outcome)


globals().update(ringside.on_each(Itself, ringside.GUESTS))

if __name__ == "__main__":
    unittest.main()
