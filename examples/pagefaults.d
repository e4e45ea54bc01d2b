#!/usr/bin/env -S ringside -s
/*
 * pagefaults.d - page faults by process.
 *
 * USAGE: ringside --attach TARGET -s pagefaults.d
 *
 * MAJOR are those that had to wait for a disk.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

fbt::handle_mm_fault:return
{
	@all[execname] = sum(arg1 & 0x400 ? 0 : 1);	/* VM_FAULT_RETRY: it comes once more */
	@major[execname] = sum(arg1 & 4 ? 1 : 0);	/* VM_FAULT_MAJOR */
}

dtrace:::END
{
	printf("%-16s %10s %10s\n", "COMMAND", "FAULTS", "MAJOR");
	printa("%-16s %@10d %@10d\n", @all, @major);
}
