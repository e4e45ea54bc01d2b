#!/usr/bin/env -S ringside -s
/*
 * sleeps.d - how long processes ask to sleep.
 *
 * USAGE: ringside --attach TARGET -s sleeps.d
 *
 * Microseconds. Timers that fire often cost power and time.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

fbt::hrtimer_nanosleep:entry
{
	@[execname] = quantize(arg0 / 1000);
}
