#!/usr/bin/env -S ringside -s
/*
 * funccount.d - how often functions of the kernel are called, by a pattern.
 *
 * USAGE: ringside --attach TARGET -s funccount.d PATTERN
 *
 * As in: ringside --attach TARGET -s funccount.d 'tcp_*'
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

fbt::$1:entry
{
	@[probefunc] = count();
}

dtrace:::END
{
	printf("%-50s %8s\n", "FUNCTION", "COUNT");
	printa("%-50s %@8d\n", @);
}
