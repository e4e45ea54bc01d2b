#!/usr/bin/env -S ringside -s
/*
 * calltime.d - time spent in system calls, by process and call.
 *
 * USAGE: ringside --attach TARGET -s calltime.d
 *
 * Microseconds, all calls together; waiting counts, too.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

syscall:::entry
{
	self->since = timestamp;
}

syscall:::return
/self->since/
{
	@calls[execname, probefunc] = count();
	@time[execname, probefunc] = sum((timestamp - self->since) / 1000);
	self->since = 0;
}

dtrace:::END
{
	printf("%-16s %-20s %8s %12s\n", "COMMAND", "CALL", "CALLS", "MICROSECONDS");
	printa("%-16s %-20s %@8d %@12d\n", @calls, @time);
}
