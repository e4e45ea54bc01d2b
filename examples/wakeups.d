#!/usr/bin/env -S ringside -s
/*
 * wakeups.d - who wakes whom.
 *
 * USAGE: ringside --attach TARGET -s wakeups.d
 *
 * The interrupts of a processor count for whoever it ran: swapper when it was idle.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

sched:::wakeup
{
	@[execname, args[1]->pr_fname] = count();
}

dtrace:::END
{
	printf("%-16s %-16s %8s\n", "WAKER", "WOKEN", "COUNT");
	printa("%-16s %-16s %@8d\n", @);
}
