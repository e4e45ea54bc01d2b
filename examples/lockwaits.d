#!/usr/bin/env -S ringside -s
/*
 * lockwaits.d - waits for mutexes and read-write semaphores of the kernel, by stack.
 *
 * USAGE: ringside --attach TARGET -s lockwaits.d
 *
 * Nanoseconds from the moment in which a task could not have the lock at once. An adaptive lock is
 * Linux's mutex: its block is a wait asleep, its spin one for an owner who is running.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

lockstat:::adaptive-block,
lockstat:::adaptive-spin,
lockstat:::rw-block
{
	@[probename, stack(8)] = quantize(arg1);
}
