#!/usr/bin/env -S ringside -s
/*
 * callers.d - who calls a function of the kernel: processes and stacks.
 *
 * USAGE: ringside --attach TARGET -s callers.d FUNCTION
 *
 * As in: ringside --attach TARGET -s callers.d tcp_v4_connect
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

fbt::$1:entry
{
	@[execname, stack()] = count();
}
