#!/usr/bin/env -S ringside -s
/*
 * uthreads.d - threads that processes create, by start routine.
 *
 * USAGE: ringside --attach TARGET -s uthreads.d
 *
 * Calls of pthread_create in the C library. A routine has a name if its program or library exports
 * it.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

pid*:libc.so.6:pthread_create:entry
{
	@[execname, pid, ufunc(arg2)] = count();
}

dtrace:::END
{
	printf("\n%-16s %6s %-40s %8s\n", "COMMAND", "PID", "ROUTINE", "COUNT");
	printa("%-16s %6d %-40A %@8d\n", @);
}
