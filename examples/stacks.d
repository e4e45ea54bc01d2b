#!/usr/bin/env -S ringside -s
/*
 * stacks.d - where the kernel spends its time: its stacks, 97 times a second.
 *
 * USAGE: ringside --attach TARGET -s stacks.d
 *
 * A stack is counted when a processor is found in it; the most frequent come last.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

profile-97
/arg0/
{
	@[stack()] = count();
}

dtrace:::END
{
	trunc(@, 10);
}
