#!/usr/bin/env -S ringside -s
/*
 * callgraph.d - what a function of the kernel calls, as a tree, with nanoseconds.
 *
 * USAGE: ringside --attach TARGET -s callgraph.d FUNCTION PATTERN
 *
 * The first call of the function, to its end: all functions that match the pattern, which the function
 * itself should, too, as in: ringside --attach TARGET -s callgraph.d vfs_read 'vfs_*'
 */

#pragma D option flowindent

dtrace:::BEGIN
{
	printf("Tracing... Ends with the function's first call.");
}

fbt::$1:entry
/!began/
{
	began = 1;
	self->since = timestamp;
}

fbt::$2:entry,
fbt::$2:return
/self->since/
{
	trace(timestamp - self->since);
}

fbt::$1:return
/self->since/
{
	exit(0);
}
