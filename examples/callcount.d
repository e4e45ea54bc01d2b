#!/usr/bin/env -S ringside -s
/*
 * callcount.d - system calls, by process and call.
 *
 * USAGE: ringside --attach TARGET -s callcount.d
 *
 * The most frequent ones come last.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

syscall:::entry
{
	@[execname, probefunc] = count();
}

dtrace:::END
{
	printf("%-16s %-20s %8s\n", "COMMAND", "CALL", "COUNT");
	printa("%-16s %-20s %@8d\n", @);
}
