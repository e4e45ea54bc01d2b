#!/usr/bin/env -S ringside -s
/*
 * hotfuncs.d - the kernel's functions in which processors are found.
 *
 * USAGE: ringside --attach TARGET -s hotfuncs.d
 *
 * Idle processors are found in what waits for an interrupt.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

profile-97
/arg0/
{
	@[func(arg0)] = count();
}

dtrace:::END
{
	printf("%-50s %8s\n", "FUNCTION", "FOUND");
	printa("%-50a %@8d\n", @);
}
