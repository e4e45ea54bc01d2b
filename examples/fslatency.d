#!/usr/bin/env -S ringside -s
/*
 * fslatency.d - latency of reads and writes, by file system.
 *
 * USAGE: ringside --attach TARGET -s fslatency.d
 *
 * Nanoseconds from the call to its end, in the kernel.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

fbt::vfs_read:entry,
fbt::vfs_write:entry
{
	self->system = stringof(args[0]->f_inode->i_sb->s_type->name);
	self->since = timestamp;
}

fbt::vfs_read:return,
fbt::vfs_write:return
/self->since/
{
	@[self->system, probefunc] = quantize(timestamp - self->since);
	self->since = 0;
	self->system = 0;
}
