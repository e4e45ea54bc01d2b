#!/usr/bin/env -S ringside -s
/*
 * oncpu.d - who runs: processes found on processors, and in which mode.
 *
 * USAGE: ringside --attach TARGET -s oncpu.d
 *
 * 97 looks a second at each processor; swapper is a processor that has nothing to do.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

profile-97
{
	@[execname, pid, arg0 ? "kernel" : "user"] = count();
}

dtrace:::END
{
	printf("%-16s %6s %-6s %8s\n", "COMMAND", "PID", "MODE", "FOUND");
	printa("%-16s %6d %-6s %@8d\n", @);
}
