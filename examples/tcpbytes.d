#!/usr/bin/env -S ringside -s
/*
 * tcpbytes.d - bytes that are sent and received by TCP, by address and port.
 *
 * USAGE: ringside --attach TARGET -s tcpbytes.d
 *
 * Bytes inside the segments, without headers.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

tcp:::send
{
	@["sent", args[2]->ip_daddr, args[4]->tcp_dport] =
	    sum(args[2]->ip_plength - args[4]->tcp_offset);
}

tcp:::receive
{
	@["received", args[2]->ip_saddr, args[4]->tcp_sport] =
	    sum(args[2]->ip_plength - args[4]->tcp_offset);
}

dtrace:::END
{
	printf("%-8s %-28s %5s %12s\n", "HOW", "ADDRESS", "PORT", "BYTES");
	printa("%-8s %-28s %5d %@12d\n", @);
}
