#!/usr/bin/env -S ringside -s
/*
 * removals.d - files that are removed or renamed.
 *
 * USAGE: ringside --attach TARGET -s removals.d
 *
 * The last part of the path; the process's folder tells the rest.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%-6s %-16s %-8s %s\n", "PID", "COMMAND", "WHAT", "NAME");
}

fbt::vfs_unlink:entry
{
	printf("%-6d %-16s %-8s %s\n", pid, execname, "remove", stringof(args[2]->d_name.name));
}

fbt::vfs_rmdir:entry
{
	printf("%-6d %-16s %-8s %s\n", pid, execname, "rmdir", stringof(args[2]->d_name.name));
}

fbt::vfs_rename:entry
{
	printf("%-6d %-16s %-8s %s -> %s\n", pid, execname, "rename",
	    stringof(args[0]->old_dentry->d_name.name), stringof(args[0]->new_dentry->d_name.name));
}
