#!/usr/bin/env -S ringside -s
/*
 * connlatency.d - how long TCP connections take to be established, by address and port.
 *
 * USAGE: ringside --attach TARGET -s connlatency.d
 *
 * Microseconds from the first packet that is sent to the answer.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

tcp:::connect-request
{
	asked[args[1]->cs_cid] = timestamp;
}

tcp:::connect-established
/asked[args[1]->cs_cid]/
{
	@[args[3]->tcps_raddr] =
	    quantize((timestamp - asked[args[1]->cs_cid]) / 1000);
	asked[args[1]->cs_cid] = 0;
}
