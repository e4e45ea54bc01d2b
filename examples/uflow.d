#!/usr/bin/env -S ringside -s
/*
 * uflow.d - entries and returns of a process's functions, as a tree, with microseconds.
 *
 * USAGE: ringside --attach TARGET -s uflow.d -p PID MODULE PATTERN
 *
 * The columns are the thread's number, and the time since the thread's previous line. MODULE is
 * a.out for the program, or the file name of a library. The lines of several threads mix, and the
 * indentation is by CPU. A function that ends with a jump to another one returns before that one is
 * entered. As in: ringside --attach TARGET -s uflow.d -p 812 a.out 'parse_*'
 */

#pragma D option flowindent

self uint64_t last;

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.");
}

pid$target:$1:$2:entry,
pid$target:$1:$2:return
{
	printf("%8d %8d", tid, self->last ? (timestamp - self->last) / 1000 : 0);
	self->last = timestamp;
}
