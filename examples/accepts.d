#!/usr/bin/env -S ringside -s
/*
 * accepts.d - TCP connections that processes accept.
 *
 * USAGE: ringside --attach TARGET -s accepts.d
 *
 * The address and the port are the other side's; IPv4 and IPv6. What comes by IPv4 to a socket of
 * IPv6 has an address that begins with ::ffff:.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%-6s %-16s %-20s %5s %5s\n", "PID", "COMMAND", "FROM", "PORT", "TO");
}

fbt::inet_csk_accept:return
/arg1 != NULL/
{
	this->sock = (struct sock_common *)arg1;
	printf("%-6d %-16s %-20s %5d %5d\n", pid, execname, this->sock->skc_family == AF_INET ?
	    inet_ntoa(&this->sock->skc_daddr) : inet_ntoa6(&this->sock->skc_v6_daddr),
	    ntohs(this->sock->skc_dport), this->sock->skc_num);
}
