#!/usr/bin/env -S ringside -s
/*
 * errors.d - system calls that fail, by process and error.
 *
 * USAGE: ringside --attach TARGET -s errors.d
 *
 * Errors 11 (EAGAIN) and 4 (EINTR) are often no trouble at all.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

syscall:::return
/errno != 0/
{
	@[execname, probefunc, errno] = count();
}

dtrace:::END
{
	printf("%-16s %-20s %5s %8s\n", "COMMAND", "CALL", "ERROR", "COUNT");
	printa("%-16s %-20s %5d %@8d\n", @);
}
