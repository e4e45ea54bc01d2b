#!/usr/bin/env -S ringside -s
/*
 * oomkills.d - processes that the kernel kills for want of memory.
 *
 * USAGE: ringside --attach TARGET -s oomkills.d
 *
 * The process that asked for the memory is rarely the one that is killed.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

fbt::oom_kill_process:entry
{
	printf("%Y: %s (%d) asked for memory; %s (%d) is killed\n", walltimestamp, execname, pid,
	    stringof(args[0]->chosen->comm), args[0]->chosen->pid);
}
