#!/usr/bin/env -S ringside -s
/*
 * ufunclatency.d - how long functions of a process take, as a distribution.
 *
 * USAGE: ringside --attach TARGET -s ufunclatency.d -p PID MODULE FUNCTION
 *
 * Nanoseconds from entry to return; waits count, too. MODULE is a.out for the program, or the file
 * name of a library. FUNCTION may be a pattern. If a function calls itself, only the innermost call
 * counts. A function that ends with a jump to another one ends there.
 * As in: ringside --attach TARGET -s ufunclatency.d -p 812 libc.so.6 'f*sync'
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

pid$target:$1:$2:entry
{
	self->since[probefunc] = timestamp;
}

pid$target:$1:$2:return
/self->since[probefunc]/
{
	@[probefunc] = quantize(timestamp - self->since[probefunc]);
	self->since[probefunc] = 0;
}
