#!/usr/bin/env -S ringside -s
/*
 * retransmits.d - TCP segments that are sent again, by connection.
 *
 * USAGE: ringside --attach TARGET -s retransmits.d
 *
 * Segments come again when their acknowledgement does not: packets were lost, or late.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

fbt::tcp_retransmit_skb:entry
{
	this->sock = &args[0]->__sk_common;
	@[inet_ntoa(&this->sock->skc_rcv_saddr), this->sock->skc_num,
	    inet_ntoa(&this->sock->skc_daddr), ntohs(this->sock->skc_dport)] = count();
}

dtrace:::END
{
	printf("%-16s %5s %-16s %5s %8s\n", "FROM", "PORT", "TO", "PORT", "COUNT");
	printa("%-16s %5d %-16s %5d %@8d\n", @);
}
