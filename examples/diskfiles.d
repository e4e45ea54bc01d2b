#!/usr/bin/env -S ringside -s
/*
 * diskfiles.d - bytes that files have read from and written to disks, by process and file.
 *
 * USAGE: ringside --attach TARGET -s diskfiles.d
 *
 * Data that the page cache holds is not read again, and is written later, by a thread of the kernel.
 * <none> is a file system's own data, or a disk that is read without one.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

io:::start
{
	@[execname, args[1]->dev_statname, args[0]->b_flags & B_READ ? "R" : "W",
	    args[2]->fi_pathname] = sum(args[0]->b_bcount);
}

dtrace:::END
{
	printf("%-16s %-8s %1s %10s %s\n", "COMMAND", "DISK", "D", "BYTES", "FILE");
	printa("%-16s %-8s %s %@10d %s\n", @);
}
