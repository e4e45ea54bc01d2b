#!/usr/bin/env -S ringside -s
/*
 * lifetimes.d - how long processes live, by program.
 *
 * USAGE: ringside --attach TARGET -s lifetimes.d
 *
 * Milliseconds, of processes that begin and end while this runs.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

proc:::start
{
	began[pid] = timestamp;
}

proc:::exit
/began[pid]/
{
	@[execname] = quantize((timestamp - began[pid]) / 1000000);
	began[pid] = 0;
}
