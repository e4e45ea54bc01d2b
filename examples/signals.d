#!/usr/bin/env -S ringside -s
/*
 * signals.d - signals that are sent: by whom, to whom, which.
 *
 * USAGE: ringside --attach TARGET -s signals.d
 *
 * The sender of what the kernel itself sends is the process that ran then.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%-6s %-16s %-6s %-16s %s\n", "FROM", "COMMAND", "TO", "COMMAND", "SIGNAL");
}

fbt::complete_signal:entry
{
	printf("%-6d %-16s %-6d %-16s %d\n", pid, execname, args[1]->tgid,
	    stringof(args[1]->comm), args[0]);
}
