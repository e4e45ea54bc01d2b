#!/usr/bin/env -S ringside -s
/*
 * functime.d - how long a function of the kernel takes, as a distribution.
 *
 * USAGE: ringside --attach TARGET -s functime.d FUNCTION
 *
 * Nanoseconds from entry to return; waits count, too. As in: ringside --attach TARGET -s functime.d
 * vfs_read
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

fbt::$1:entry
{
	self->since = timestamp;
}

fbt::$1:return
/self->since/
{
	@[probefunc] = quantize(timestamp - self->since);
	self->since = 0;
}
