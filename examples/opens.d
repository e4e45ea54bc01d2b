#!/usr/bin/env -S ringside -s
/*
 * opens.d - files that processes open, as it happens.
 *
 * USAGE: ringside --attach TARGET -s opens.d
 *
 * ERR is the error's number, 0 when the file was opened. A process that opens
 * relative to a folder shows the path as it gave it.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%-6s %-16s %3s %s\n", "PID", "COMMAND", "ERR", "PATH");
}

syscall::open:entry
{
	self->path = arg0;
}

syscall::openat:entry,
syscall::openat2:entry
{
	self->path = arg1;
}

syscall::open:return,
syscall::openat:return,
syscall::openat2:return
/self->path/
{
	printf("%-6d %-16s %3d %s\n", pid, execname, errno, copyinstr(self->path));
	self->path = 0;
}
