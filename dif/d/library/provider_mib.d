/*
 * The probes of mib: places where a statistic grows. Names and arguments: the published Dynamic Tracing
 * Guide. Where Linux counts the same thing itself, its own counter is the place; arg0 there is the
 * number that is added, arg1 the address of this CPU's counter, which still has the value before. A
 * statistic that Linux has nowhere says so, and what comes nearest.
 */
#pragma D depends_on module vmlinux

provider mib {
	probe icmpInAddrMaskReps()
	    absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpInAddrMasks() absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpInBadRedirects()
	    absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpInCksumErrs(long increment, unsigned long address)
	    = counter:::init_net.mib.icmp_statistics[ICMP_MIB_CSUMERRORS] {
		increment = arg0;
		address = arg1;
	    };
	probe icmpInDestUnreachs()
	    absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpInEchoReps() absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpInEchos() absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpInErrors(long increment, unsigned long address)
	    = counter:::init_net.mib.icmp_statistics[ICMP_MIB_INERRORS] {
		increment = arg0;
		address = arg1;
	    };
	probe icmpInFragNeeded() absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpInMsgs(long increment, unsigned long address)
	    = counter:::init_net.mib.icmp_statistics[ICMP_MIB_INMSGS] {
		increment = arg0;
		address = arg1;
	    };
	probe icmpInOverflows() absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpInParmProbs() absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpInRedirects() absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpInSrcQuenchs() absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpInTimeExcds() absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpInTimestampReps()
	    absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpInTimestamps() absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpInUnknowns() absent "Linux counts it in no word of its own; nearest: mib:::icmpInMsgs";
	probe icmpOutAddrMaskReps()
	    absent "Linux counts it in no word of its own; nearest: mib:::icmpOutMsgs";
	probe icmpOutAddrMasks() absent "Linux counts it in no word of its own; nearest: mib:::icmpOutMsgs";
	probe icmpOutDestUnreachs()
	    absent "Linux counts it in no word of its own; nearest: mib:::icmpOutMsgs";
	probe icmpOutDrops() absent "Linux counts it in no word of its own; nearest: mib:::icmpOutMsgs";
	probe icmpOutEchoReps() absent "Linux counts it in no word of its own; nearest: mib:::icmpOutMsgs";
	probe icmpOutEchos() absent "Linux counts it in no word of its own; nearest: mib:::icmpOutMsgs";
	probe icmpOutErrors(long increment, unsigned long address)
	    = counter:::init_net.mib.icmp_statistics[ICMP_MIB_OUTERRORS] {
		increment = arg0;
		address = arg1;
	    };
	probe icmpOutFragNeeded()
	    absent "Linux counts it in no word of its own; nearest: mib:::icmpOutMsgs";
	probe icmpOutMsgs(long increment, unsigned long address)
	    = counter:::init_net.mib.icmp_statistics[ICMP_MIB_OUTMSGS] {
		increment = arg0;
		address = arg1;
	    };
	probe icmpOutParmProbs() absent "Linux counts it in no word of its own; nearest: mib:::icmpOutMsgs";
	probe icmpOutRedirects() absent "Linux counts it in no word of its own; nearest: mib:::icmpOutMsgs";
	probe icmpOutSrcQuenchs()
	    absent "Linux counts it in no word of its own; nearest: mib:::icmpOutMsgs";
	probe icmpOutTimeExcds() absent "Linux counts it in no word of its own; nearest: mib:::icmpOutMsgs";
	probe icmpOutTimestampReps()
	    absent "Linux counts it in no word of its own; nearest: mib:::icmpOutMsgs";
	probe icmpOutTimestamps()
	    absent "Linux counts it in no word of its own; nearest: mib:::icmpOutMsgs";
	probe ipForwDatagrams(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_OUTFORWDATAGRAMS] {
		increment = arg0;
		address = arg1;
	    };
	probe ipForwProhibits() absent "Linux does not count it; nearest: ip:::receive and ip:::send";
	probe ipFragCreates(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_FRAGCREATES] {
		increment = arg0;
		address = arg1;
	    };
	probe ipFragFails(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_FRAGFAILS] {
		increment = arg0;
		address = arg1;
	    };
	probe ipFragOKs(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_FRAGOKS] {
		increment = arg0;
		address = arg1;
	    };
	probe ipInCksumErrs(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_CSUMERRORS] {
		increment = arg0;
		address = arg1;
	    };
	probe ipInDelivers(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_INDELIVERS] {
		increment = arg0;
		address = arg1;
	    };
	probe ipInDiscards(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_INDISCARDS] {
		increment = arg0;
		address = arg1;
	    };
	probe ipInHdrErrors(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_INHDRERRORS] {
		increment = arg0;
		address = arg1;
	    };
	probe ipInIPv6() absent "Linux does not count it; nearest: ip:::receive and ip:::send";
	probe ipInReceives(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_INPKTS] {
		increment = arg0;
		address = arg1;
	    };
	probe ipInUnknownProtos(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_INUNKNOWNPROTOS] {
		increment = arg0;
		address = arg1;
	    };
	probe ipOutDiscards(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_OUTDISCARDS] {
		increment = arg0;
		address = arg1;
	    };
	probe ipOutIPv6() absent "Linux does not count it; nearest: ip:::receive and ip:::send";
	probe ipOutNoRoutes(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_OUTNOROUTES] {
		increment = arg0;
		address = arg1;
	    };
	probe ipOutRequests(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_OUTREQUESTS] | counter:::init_net.mib.ip_statistics[IPSTATS_MIB_OUTPKTS] {
		increment = arg0;
		address = arg1;
	    };
	probe ipReasmDuplicates() absent "Linux does not count it; nearest: ip:::receive and ip:::send";
	probe ipReasmFails(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_REASMFAILS] {
		increment = arg0;
		address = arg1;
	    };
	probe ipReasmOKs(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_REASMOKS] {
		increment = arg0;
		address = arg1;
	    };
	probe ipReasmPartDups() absent "Linux does not count it; nearest: ip:::receive and ip:::send";
	probe ipReasmReqds(long increment, unsigned long address)
	    = counter:::init_net.mib.ip_statistics[IPSTATS_MIB_REASMREQDS] {
		increment = arg0;
		address = arg1;
	    };
	probe ipsecInFailed() absent "Linux does not count it; nearest: ip:::receive and ip:::send";
	probe ipsecInSucceeded() absent "Linux does not count it; nearest: ip:::receive and ip:::send";
	probe rawipInCksumErrs() absent "Linux does not count raw sockets; nearest: fbt::raw_rcv:entry";
	probe rawipInDatagrams() absent "Linux does not count raw sockets; nearest: fbt::raw_rcv:entry";
	probe rawipInErrors() absent "Linux does not count raw sockets; nearest: fbt::raw_rcv:entry";
	probe rawipInOverflows() absent "Linux does not count raw sockets; nearest: fbt::raw_rcv:entry";
	probe rawipOutDatagrams()
	    absent "Linux does not count raw sockets; nearest: fbt::raw_sendmsg:entry";
	probe rawipOutErrors() absent "Linux does not count raw sockets; nearest: fbt::raw_sendmsg:entry";
	probe tcpActiveOpens(long increment, unsigned long address)
	    = counter:::init_net.mib.tcp_statistics[TCP_MIB_ACTIVEOPENS] {
		increment = arg0;
		address = arg1;
	    };
	probe tcpAttemptFails(long increment, unsigned long address)
	    = counter:::init_net.mib.tcp_statistics[TCP_MIB_ATTEMPTFAILS] {
		increment = arg0;
		address = arg1;
	    };
	probe tcpEstabResets(long increment, unsigned long address)
	    = counter:::init_net.mib.tcp_statistics[TCP_MIB_ESTABRESETS] {
		increment = arg0;
		address = arg1;
	    };
	probe tcpHalfOpenDrop()
	    absent "Linux does not tell it from other drops; nearest: mib:::tcpListenDrop";
	probe tcpInAckBytes() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInAckSegs() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInAckUnsent() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInClosed() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInDataDupBytes() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInDataDupSegs() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInDataInorderBytes() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInDataInorderSegs() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInDataPartDupBytes() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInDataPartDupSegs() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInDataPastWinBytes() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInDataPastWinSegs() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInDataUnorderBytes() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInDataUnorderSegs() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInDupAck() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInErrs(long increment, unsigned long address)
	    = counter:::init_net.mib.tcp_statistics[TCP_MIB_INERRS] { increment = arg0; address = arg1; };
	probe tcpInSegs(long increment, unsigned long address)
	    = counter:::init_net.mib.tcp_statistics[TCP_MIB_INSEGS] { increment = arg0; address = arg1; };
	probe tcpInWinProbe() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpInWinUpdate() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpListenDrop(long increment, unsigned long address)
	    = counter:::init_net.mib.net_statistics[LINUX_MIB_LISTENDROPS] {
		increment = arg0;
		address = arg1;
	    };
	probe tcpListenDropQ0()
	    absent "Linux does not tell it from other drops; nearest: mib:::tcpListenDrop";
	probe tcpOutAck() absent "Linux does not count it; nearest: tcp:::send";
	probe tcpOutAckDelayed(long increment, unsigned long address)
	    = counter:::init_net.mib.net_statistics[LINUX_MIB_DELAYEDACKS] {
		increment = arg0;
		address = arg1;
	    };
	probe tcpOutControl() absent "Linux does not count it; nearest: tcp:::send";
	probe tcpOutDataBytes() absent "Linux does not count it; nearest: tcp:::send";
	probe tcpOutDataSegs() absent "Linux does not count it; nearest: tcp:::send";
	probe tcpOutFastRetrans(long increment, unsigned long address)
	    = counter:::init_net.mib.net_statistics[LINUX_MIB_TCPFASTRETRANS] {
		increment = arg0;
		address = arg1;
	    };
	probe tcpOutRsts(long increment, unsigned long address)
	    = counter:::init_net.mib.tcp_statistics[TCP_MIB_OUTRSTS] { increment = arg0; address = arg1; };
	probe tcpOutSackRetransSegs() absent "Linux does not count it; nearest: tcp:::send";
	probe tcpOutSegs(long increment, unsigned long address)
	    = counter:::init_net.mib.tcp_statistics[TCP_MIB_OUTSEGS] { increment = arg0; address = arg1; };
	probe tcpOutUrg() absent "Linux does not count it; nearest: tcp:::send";
	probe tcpOutWinProbe() absent "Linux does not count it; nearest: tcp:::send";
	probe tcpOutWinUpdate() absent "Linux does not count it; nearest: tcp:::send";
	probe tcpPassiveOpens(long increment, unsigned long address)
	    = counter:::init_net.mib.tcp_statistics[TCP_MIB_PASSIVEOPENS] {
		increment = arg0;
		address = arg1;
	    };
	probe tcpRetransBytes() absent "Linux does not count it; nearest: tcp:::send";
	probe tcpRetransSegs(long increment, unsigned long address)
	    = counter:::init_net.mib.tcp_statistics[TCP_MIB_RETRANSSEGS] {
		increment = arg0;
		address = arg1;
	    };
	probe tcpRttNoUpdate() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpRttUpdate() absent "Linux does not count it; nearest: tcp:::receive";
	probe tcpTimKeepalive() absent "Linux counts the probes alone; nearest: mib:::tcpTimKeepaliveProbe";
	probe tcpTimKeepaliveDrop()
	    absent "Linux counts the probes alone; nearest: mib:::tcpTimKeepaliveProbe";
	probe tcpTimKeepaliveProbe(long increment, unsigned long address)
	    = counter:::init_net.mib.net_statistics[LINUX_MIB_TCPKEEPALIVE] {
		increment = arg0;
		address = arg1;
	    };
	probe tcpTimRetrans(long increment, unsigned long address)
	    = counter:::init_net.mib.net_statistics[LINUX_MIB_TCPTIMEOUTS] {
		increment = arg0;
		address = arg1;
	    };
	probe tcpTimRetransDrop(long increment, unsigned long address)
	    = counter:::init_net.mib.net_statistics[LINUX_MIB_TCPABORTONTIMEOUT] {
		increment = arg0;
		address = arg1;
	    };
	probe udpInCksumErrs(long increment, unsigned long address)
	    = counter:::init_net.mib.udp_statistics[UDP_MIB_CSUMERRORS] {
		increment = arg0;
		address = arg1;
	    };
	probe udpInCksumErrs(long increment, unsigned long address)
	    = counter:::init_net.mib.udp_stats_in6[UDP_MIB_CSUMERRORS] {
		increment = arg0;
		address = arg1;
	    };
	probe udpInDatagrams(long increment, unsigned long address)
	    = counter:::init_net.mib.udp_statistics[UDP_MIB_INDATAGRAMS] {
		increment = arg0;
		address = arg1;
	    };
	probe udpInDatagrams(long increment, unsigned long address)
	    = counter:::init_net.mib.udp_stats_in6[UDP_MIB_INDATAGRAMS] {
		increment = arg0;
		address = arg1;
	    };
	probe udpInErrors(long increment, unsigned long address)
	    = counter:::init_net.mib.udp_statistics[UDP_MIB_INERRORS] {
		increment = arg0;
		address = arg1;
	    };
	probe udpInErrors(long increment, unsigned long address)
	    = counter:::init_net.mib.udp_stats_in6[UDP_MIB_INERRORS] { increment = arg0; address = arg1; };
	probe udpInOverflows(long increment, unsigned long address)
	    = counter:::init_net.mib.udp_statistics[UDP_MIB_RCVBUFERRORS] {
		increment = arg0;
		address = arg1;
	    };
	probe udpInOverflows(long increment, unsigned long address)
	    = counter:::init_net.mib.udp_stats_in6[UDP_MIB_RCVBUFERRORS] {
		increment = arg0;
		address = arg1;
	    };
	probe udpNoPorts(long increment, unsigned long address)
	    = counter:::init_net.mib.udp_statistics[UDP_MIB_NOPORTS] { increment = arg0; address = arg1; };
	probe udpNoPorts(long increment, unsigned long address)
	    = counter:::init_net.mib.udp_stats_in6[UDP_MIB_NOPORTS] { increment = arg0; address = arg1; };
	probe udpOutDatagrams(long increment, unsigned long address)
	    = counter:::init_net.mib.udp_statistics[UDP_MIB_OUTDATAGRAMS] {
		increment = arg0;
		address = arg1;
	    };
	probe udpOutDatagrams(long increment, unsigned long address)
	    = counter:::init_net.mib.udp_stats_in6[UDP_MIB_OUTDATAGRAMS] {
		increment = arg0;
		address = arg1;
	    };
	probe udpOutErrors(long increment, unsigned long address)
	    = counter:::init_net.mib.udp_statistics[UDP_MIB_SNDBUFERRORS] {
		increment = arg0;
		address = arg1;
	    };
	probe udpOutErrors(long increment, unsigned long address)
	    = counter:::init_net.mib.udp_stats_in6[UDP_MIB_SNDBUFERRORS] {
		increment = arg0;
		address = arg1;
	    };
};
