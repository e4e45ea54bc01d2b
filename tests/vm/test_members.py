"""The stable providers' types tell the truth of processes, processors and connections, on every guest."""

import re
import unittest

import guest
import ringside
from made_images import image_with_programs

# Every member that DTrace documents, by an expression of its type; a clause for each probe.
DOCUMENTED = {
    "sched:::enqueue": {
        "args[1]": "pr_flag pr_nlwp pr_nzomb pr_pid pr_ppid pr_pgid pr_sid pr_uid pr_euid pr_gid"
                   " pr_egid pr_addr pr_size pr_rssize pr_ttydev pr_pctcpu pr_pctmem"
                   " pr_start.tv_sec pr_start.tv_nsec pr_ctime.tv_sec pr_fname pr_psargs pr_wstat"
                   " pr_argc pr_argv pr_envp pr_dmodel pr_taskid pr_projid pr_poolid pr_zoneid"
                   " pr_contract pr_lwp.pr_lwpid pr_lwp.pr_pri",
        "args[0]": "pr_flag pr_lwpid pr_addr pr_wchan pr_stype pr_state pr_sname pr_nice pr_syscall"
                   " pr_oldpri pr_cpu pr_pri pr_pctcpu pr_start.tv_sec pr_time.tv_nsec pr_clname"
                   " pr_name pr_onpro pr_bindpro pr_bindpset pr_lgrp",
        "args[2]": "cpu_id cpu_pset cpu_chip cpu_lgrp cpu_info.pi_state cpu_info.pi_processor_type"
                   " cpu_info.pi_fputypes cpu_info.pi_clock"},
    "io:::start": {
        "args[0]": "b_flags b_bcount b_addr b_lblkno b_blkno b_resid b_bufsize b_iodone b_error"
                   " b_edev",
        "args[1]": "dev_major dev_minor dev_instance dev_name dev_statname dev_pathname",
        "args[2]": "fi_name fi_dirname fi_pathname fi_offset fi_fs fi_mount fi_oflags"},
    "ip:::send": {
        "args[0]": "pkt_addr",
        "args[1]": "cs_addr cs_cid cs_pid cs_zoneid",
        "args[2]": "ip_ver ip_plength ip_saddr ip_daddr",
        "args[3]": "if_name if_local if_ipstack if_addr",
        "args[4]": "ipv4_ver ipv4_ihl ipv4_tos ipv4_length ipv4_ident ipv4_flags ipv4_offset ipv4_ttl"
                   " ipv4_protocol ipv4_protostr ipv4_checksum ipv4_src ipv4_dst ipv4_saddr"
                   " ipv4_daddr ipv4_hdr ipv4_hdr->ipha_ttl ipv4_hdr->ipha_src",
        "args[5]": "ipv6_ver ipv6_tclass ipv6_flow ipv6_plen ipv6_nexthdr ipv6_nextstr ipv6_hlim"
                   " ipv6_src ipv6_dst ipv6_saddr ipv6_daddr ipv6_hdr ipv6_hdr->ip6_hlim"},
    "tcp:::send": {
        "args[3]": "tcps_addr tcps_local tcps_active tcps_lport tcps_rport tcps_laddr tcps_raddr"
                   " tcps_state tcps_iss tcps_suna tcps_snxt tcps_rack tcps_rnxt tcps_swnd"
                   " tcps_snd_ws tcps_rwnd tcps_rcv_ws tcps_cwnd tcps_cwnd_ssthresh tcps_sack_fack"
                   " tcps_sack_snxt tcps_rto tcps_mss tcps_retransmit",
        "args[4]": "tcp_sport tcp_dport tcp_seq tcp_ack tcp_offset tcp_flags tcp_window tcp_checksum"
                   " tcp_urgent tcp_hdr tcp_hdr->th_flags[0]"},
    "tcp:::state-change": {"args[5]": "tcps_state"},
    "udp:::send": {
        "args[3]": "udps_addr udps_lport udps_rport udps_laddr udps_raddr",
        "args[4]": "udp_sport udp_dport udp_length udp_checksum udp_hdr udp_hdr->uha_length"},
    "proc:::fault": {
        "args[1]": "si_signo si_errno si_code si_pid si_uid si_addr si_status si_band"},
}

# Of processes, as of a program in the guest that knows its own.
ASKS = """
syscall::getppid:entry /execname == "workload"/
{
	this->argv = (uint64_t *)copyin(curpsinfo->pr_argv, 8 * (curpsinfo->pr_argc + 1));
	this->envp = (uint64_t *)copyin(curpsinfo->pr_envp, 8);
	printf("<argv> %d %s %s %s %d\\n", curpsinfo->pr_argc, copyinstr(this->argv[0]),
	    copyinstr(this->argv[1]), copyinstr(this->argv[2]), this->argv[3]);
	printf("<envp> %d\\n", copyinstr(this->envp[0]) == copyinstr(curthread->mm->env_start));
	printf("<lwp> %d %d %d %d %d\\n", curlwpsinfo->pr_syscall, curlwpsinfo->pr_nice,
	    curpsinfo->pr_dmodel == PR_MODEL_LP64, curpsinfo->pr_lwp.pr_lwpid == tid,
	    curlwpsinfo->pr_flag);
	printf("<start> %d %d %d\\n", curpsinfo->pr_start.tv_sec, curlwpsinfo->pr_start.tv_sec,
	    curpsinfo->pr_start.tv_nsec < 1000000000);
	printf("<zone> %s %d %s\\n", zonename, curpsinfo->pr_zoneid, execargs);
	printf("<cpu> %d %d %s\\n", curcpu->cpu_info.pi_clock,
	    curcpu->cpu_info.pi_state == P_ONLINE && curcpu->cpu_id == cpu,
	    curcpu->cpu_info.pi_processor_type);
}
syscall::read:return /execname == "cat" && arg0 > 0/
{
	printf("<size> %d\\n", curpsinfo->pr_size / 4);
}
sched:::wakeup /(args[0]->pr_flag & PR_KTHREAD) == 0/ { @slept[args[1]->pr_fname, args[0]->pr_syscall] = count(); }
sched:::wakeup /args[0]->pr_flag & PR_KTHREAD && args[0]->pr_syscall != 0/ { @wrong["<wrong>"] = count(); }
ERROR { @wrong["<error>"] = count(); }
END { printa("<slept> %s %d %@d\\n", @slept); printa("%s %@d\\n", @wrong); }
"""

# Whose connection it is, and from which number on.
CONNECTIONS = """
tcp:::connect-request
{
	printf("<request> %d %d %d\\n", args[3]->tcps_iss == args[4]->tcp_seq, args[3]->tcps_active,
	    args[1]->cs_pid == pid);
}
tcp:::connect-established /args[3]->tcps_iss + 1 == args[4]->tcp_ack/
{
	printf("<established> %d %d\\n", args[3]->tcps_active, args[1]->cs_pid == pid);
	printf("<theirs> %d\\n", args[4]->tcp_seq);
}
tcp:::accept-established
{
	printf("<accepted> %d\\n", args[3]->tcps_active);
	printf("<ours> %d\\n", args[3]->tcps_iss);
}
tcp:::send /args[3]->tcps_active && (args[4]->tcp_flags & TH_SYN)/
{
	first[args[1]->cs_cid] = args[4]->tcp_seq;
}
tcp:::send /args[3]->tcps_active && args[3]->tcps_iss != first[args[1]->cs_cid]/
{
	@wrong["<wrong>"] = count();
}
tcp:::send /args[3]->tcps_iss != 0 && (args[3]->tcps_rto < 200 || args[3]->tcps_rto > 120000 ||
    args[3]->tcps_sack_fack != args[3]->tcps_suna || args[3]->tcps_sack_snxt != args[3]->tcps_suna)/
{
	@wrong["<timer>"] = count();
}
udp:::send { printf("<udp> %d\\n", args[1]->cs_pid == pid); }
proc:::exit /execname == "stable"/ { @nice["<nice>"] = max(curlwpsinfo->pr_nice); }
ERROR { @wrong["<error>"] = count(); }
END { printa("%s %@d\\n", @wrong); printa("%s %@d\\n", @nice); }
"""


class Members:
    """The tests; the classes at the end say on which guest."""

    image = ""
    cpus = 0

    def trace(self, program, command, **settings):
        """Runs a program to the command's end, which has to be a good one."""
        outcome = ringside.run(program, image=self.image, cpus=self.cpus, command=command,
                               options=["-q"], **settings)
        self.assertEqual(outcome.status, 0, outcome)
        return outcome

    def words(self, outcome, name):
        """The text after a name, line by line."""
        return re.findall(rf"^<{name}> (.*)$", outcome.stdout, re.MULTILINE)

    def test_every_documented_member_is_there(self):
        program = "".join(
            probe + "{" + "".join(f"trace({value}->{member});" for value, members in values.items()
                                  for member in members.split()) + "}"
            for probe, values in DOCUMENTED.items())

        outcome = ringside.run(program, image=self.image, cpus=self.cpus, options=["-e"])

        self.assertEqual(outcome.status, 0, outcome)

    def test_of_processes_and_processors(self):
        outcome = self.trace(ASKS, "date +'<before> %s'; workload"
                             " --getppid 1; date +'<after> %s'; cat /proc/self/statm;"
                             " grep MHz /proc/cpuinfo; sleep 0.1; true")

        self.assertEqual(self.words(outcome, "argv"), ["3 workload --getppid 1 0"], outcome)
        self.assertEqual(self.words(outcome, "envp"), ["1"], outcome)
        getppid = 110
        self.assertEqual(self.words(outcome, "lwp"), [f"{getppid} 0 1 1 0"], outcome)
        before, after = (int(self.words(outcome, name)[0]) for name in ("before", "after"))
        started, thread_started, plausible = map(int, self.words(outcome, "start")[0].split())
        self.assertLessEqual(before, started, outcome)
        self.assertLessEqual(started, after, outcome)
        self.assertEqual((thread_started, plausible), (started, 1), outcome)
        self.assertEqual(self.words(outcome, "zone"), ["global 0 workload --getppid 1"], outcome)
        clock, online, kind = self.words(outcome, "cpu")[0].split()
        megahertz = re.search(r"^cpu MHz\s*: (\d+)", outcome.stdout, re.MULTILINE)
        self.assertEqual((clock, online, kind), (megahertz[1], "1", "x86_64"), outcome)
        pages = re.search(r"^(\d+) \d+ \d+ \d+ 0 \d+ 0$", outcome.stdout, re.MULTILINE)[1]
        self.assertIn(pages, self.words(outcome, "size"), outcome)
        clock_nanosleep, nanosleep = 230, 35
        slept = {words.rsplit(" ", 1)[0] for words in self.words(outcome, "slept")}
        self.assertTrue(slept & {f"sleep {clock_nanosleep}", f"sleep {nanosleep}"}, outcome)
        for name in ("<wrong>", "<error>"):
            self.assertNotIn(name, outcome.counts(), outcome)

    def test_of_connections(self):
        environment = self.enterContext(image_with_programs(self.image, "stable"))
        outcome = self.trace(CONNECTIONS, "stable; echo status $?; true", environment=environment)

        self.assertIn("status 0", outcome.stdout.splitlines(), outcome)
        # 10 to a listener, 5 that are refused, 2 of a socket with itself.
        self.assertEqual(self.words(outcome, "request"), ["1 1 1"] * 17, outcome)
        established = self.words(outcome, "established")
        self.assertEqual(established.count("1 1"), len(established), outcome)
        self.assertGreaterEqual(len(established), 10, outcome)
        self.assertEqual(self.words(outcome, "accepted"), ["0"] * 10, outcome)
        ours = self.words(outcome, "ours")
        self.assertLessEqual(set(ours), set(self.words(outcome, "theirs")), outcome)
        self.assertEqual(len(set(ours)), 10, outcome)
        self.assertEqual(set(self.words(outcome, "udp")), {"1"}, outcome)
        self.assertEqual(self.words(outcome, "nice"), ["4"], outcome)
        for name in ("<wrong>", "<timer>", "<error>"):
            self.assertNotIn(name, outcome.counts(), outcome)


globals().update(ringside.on_each(Members, ringside.GUESTS))


@ringside.takes_long
class Older(guest.OfSuite, Members, unittest.TestCase):
    """On the oldest kernel that is promised, Debian's 5.10."""

    suite = "bullseye"


@ringside.takes_long
class Newest(guest.OfSuite, Members, unittest.TestCase):
    """On Debian unstable's, which has members elsewhere every few months."""

    suite = "sid"

if __name__ == "__main__":
    unittest.main()
