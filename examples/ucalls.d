#!/usr/bin/env -S ringside -s
/*
 * ucalls.d - calls of a process's functions, by module and function.
 *
 * USAGE: ringside --attach TARGET -s ucalls.d -p PID MODULE PATTERN
 *
 * MODULE is a.out for the program, or the file name of a library. The most frequent functions come
 * last. As in: ringside --attach TARGET -s ucalls.d -p 812 libc.so.6 'pthread_*'
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

pid$target:$1:$2:entry
{
	@[probemod, probefunc] = count();
}

dtrace:::END
{
	printf("\n%-24s %-40s %8s\n", "MODULE", "FUNCTION", "COUNT");
	printa("%-24s %-40s %@8d\n", @);
}
