#!/usr/bin/env -S ringside -s
/*
 * tcplife.d - life spans of TCP connections, with the bytes that each end has sent and received.
 *
 * USAGE: ringside --attach TARGET -s tcplife.d
 *
 * Milliseconds from the moment in which an end is established until it is closed; only connections
 * that begin while this runs. Over the loopback device both ends are the guest's own.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%-22s %5s %-22s %5s %10s %10s %8s\n", "LOCAL", "PORT",
	    "REMOTE", "PORT", "SENT", "RECEIVED", "MS");
}

tcp:::connect-established,
tcp:::accept-established
{
	began[args[1]->cs_cid] = timestamp;
	sent[args[1]->cs_cid] = 0;
	received[args[1]->cs_cid] = 0;
}

tcp:::send
/began[args[1]->cs_cid]/
{
	sent[args[1]->cs_cid] += args[2]->ip_plength - args[4]->tcp_offset;
}

tcp:::receive
/began[args[1]->cs_cid]/
{
	received[args[1]->cs_cid] += args[2]->ip_plength - args[4]->tcp_offset;
}

tcp:::state-change
/args[3]->tcps_state == TCP_STATE_CLOSED && began[args[1]->cs_cid]/
{
	printf("%-22s %5d %-22s %5d %10d %10d %8d\n", args[3]->tcps_laddr,
	    args[3]->tcps_lport, args[3]->tcps_raddr, args[3]->tcps_rport,
	    sent[args[1]->cs_cid], received[args[1]->cs_cid],
	    (timestamp - began[args[1]->cs_cid]) / 1000000);
	began[args[1]->cs_cid] = 0;
	sent[args[1]->cs_cid] = 0;
	received[args[1]->cs_cid] = 0;
}
