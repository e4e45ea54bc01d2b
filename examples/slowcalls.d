#!/usr/bin/env -S ringside -s
/*
 * slowcalls.d - system calls that take longer than so many microseconds.
 *
 * USAGE: ringside --attach TARGET -s slowcalls.d MICROSECONDS
 *
 * Calls that wait for something to come, such as poll, take their time by design.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%-6s %-16s %-20s %12s\n", "PID", "COMMAND", "CALL", "MICROSECONDS");
}

syscall:::entry
{
	self->since = timestamp;
}

syscall:::return
/self->since && (timestamp - self->since) / 1000 >= $1/
{
	printf("%-6d %-16s %-20s %12d\n", pid, execname, probefunc,
	    (timestamp - self->since) / 1000);
}

syscall:::return
{
	self->since = 0;
}
