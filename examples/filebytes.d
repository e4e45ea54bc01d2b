#!/usr/bin/env -S ringside -s
/*
 * filebytes.d - bytes read from and written to files, by process and file.
 *
 * USAGE: ringside --attach TARGET -s filebytes.d
 *
 * Files, pipes and devices that go through the kernel's vfs_read() and vfs_write().
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

fbt::vfs_read:entry,
fbt::vfs_write:entry
{
	self->file = args[0];
}

fbt::vfs_read:return,
fbt::vfs_write:return
/self->file != 0 && (ssize_t)arg1 > 0/
{
	@[execname, stringof(self->file->f_path.dentry->d_name.name), probefunc] = sum(arg1);
}

fbt::vfs_read:return,
fbt::vfs_write:return
{
	self->file = 0;
}

dtrace:::END
{
	printf("%-16s %-24s %-10s %12s\n", "COMMAND", "FILE", "HOW", "BYTES");
	printa("%-16s %-24s %-10s %@12d\n", @);
}
