#!/usr/bin/env -S ringside -s
/*
 * iosizes.d - sizes of reads and writes, by process.
 *
 * USAGE: ringside --attach TARGET -s iosizes.d
 *
 * Bytes that were read or written, not what was asked for; pipes and sockets count, too.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

syscall::read:return,
syscall::pread64:return,
syscall::readv:return,
syscall::write:return,
syscall::pwrite64:return,
syscall::writev:return
/errno == 0/
{
	@[execname, probefunc] = quantize(arg1);
}
