#!/usr/bin/env -S ringside -s
/*
 * execs.d - programs that are started, with their arguments.
 *
 * USAGE: ringside --attach TARGET -s execs.d
 *
 * PPID is the parent's. A program that could not be started shows its error.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%-6s %-6s %3s %s\n", "PID", "PPID", "ERR", "COMMAND");
}

syscall::execve:entry
{
	self->file = arg0;
}

syscall::execve:return
/self->file/
{
	printf("%-6d %-6d %3d %s\n", pid, ppid, errno,
	    errno == 0 ? curpsinfo->pr_psargs : copyinstr(self->file));
	self->file = 0;
}
