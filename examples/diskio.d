#!/usr/bin/env -S ringside -s
/*
 * diskio.d - requests to disks as they end: size, latency, file.
 *
 * USAGE: ringside --attach TARGET -s diskio.d
 *
 * PID and COMMAND are who handed the request over; writes are often handed over later, by a thread
 * of the kernel. US is microseconds from there to the end, the device's queue with them.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%6s %-16s %-8s %1s %10s %8s %8s %s\n", "PID", "COMMAND", "DISK", "D", "BLOCK",
	    "BYTES", "US", "FILE");
}

io:::start
{
	since[arg0] = timestamp;
	who[arg0] = pid;
	command[arg0] = execname;
}

io:::done
/since[arg0]/
{
	printf("%6d %-16s %-8s %s %10d %8d %8d %s\n", who[arg0], command[arg0],
	    args[1]->dev_statname, args[0]->b_flags & B_READ ? "R" : "W", args[0]->b_blkno,
	    args[0]->b_bcount, (timestamp - since[arg0]) / 1000, args[2]->fi_pathname);
	since[arg0] = 0;
	who[arg0] = 0;
	command[arg0] = 0;
}
