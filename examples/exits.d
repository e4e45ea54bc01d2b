#!/usr/bin/env -S ringside -s
/*
 * exits.d - processes that end, with how, and how long they ran.
 *
 * USAGE: ringside --attach TARGET -s exits.d
 *
 * STATUS is the status of exit(); SIGNAL is not 0 when a signal ended it. RAN is the time
 * that its last thread had on processors, in microseconds.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%-6s %-16s %6s %6s %9s\n", "PID", "COMMAND", "STATUS", "SIGNAL", "RAN");
}

proc:::exit
{
	printf("%-6d %-16s %6d %6d %9d\n", pid, execname, (curpsinfo->pr_wstat >> 8) & 0xff,
	    curpsinfo->pr_wstat & 0x7f, vtimestamp / 1000);
}
