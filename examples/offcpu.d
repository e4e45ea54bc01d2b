#!/usr/bin/env -S ringside -s
/*
 * offcpu.d - where threads wait: time off processors, by process and stack.
 *
 * USAGE: ringside --attach TARGET -s offcpu.d
 *
 * Milliseconds, all waits together; the ten longest.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

sched:::off-cpu
/pid != 0/
{
	self->since = timestamp;
}

sched:::on-cpu
/self->since/
{
	@[execname, stack()] = sum((timestamp - self->since) / 1000000);
	self->since = 0;
}

dtrace:::END
{
	trunc(@, 10);
}
