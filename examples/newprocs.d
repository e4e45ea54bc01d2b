#!/usr/bin/env -S ringside -s
/*
 * newprocs.d - processes and threads that are made, by parent.
 *
 * USAGE: ringside --attach TARGET -s newprocs.d
 *
 * A process is made by fork, vfork and clone; a thread shares its memory.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

fbt::wake_up_new_task:entry
{
	@[execname, args[0]->pid == args[0]->tgid ? "process" : "thread"] = count();
}

dtrace:::END
{
	printf("%-16s %-8s %8s\n", "PARENT", "MADE", "COUNT");
	printa("%-16s %-8s %@8d\n", @);
}
