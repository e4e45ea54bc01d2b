#!/usr/bin/env -S ringside -s
/*
 * uleaks.d - memory that a process allocates and does not free, by caller.
 *
 * USAGE: ringside --attach TARGET -s uleaks.d -p PID
 *
 * Calls of malloc, calloc, realloc and free in the C library, while this runs. The caller with most
 * bytes comes last; umalloc.d shows whole stacks. Memory in use is not lost yet: look for callers
 * whose bytes only grow. A realloc that fails counts as a free.
 */

#pragma D option quiet
#pragma D option dynvarsize=64m

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

pid$target:libc.so.6:malloc:entry
{
	self->size = arg0;
	self->caller = ucaller;
}

pid$target:libc.so.6:calloc:entry
{
	self->size = arg0 * arg1;
	self->caller = ucaller;
}

/* Without an old block it is a malloc, which it calls. */
pid$target:libc.so.6:realloc:entry
/arg0 != 0/
{
	self->size = arg1;
	self->caller = ucaller;
}

/* Forgotten before it is freed: another thread may get the block at once. */
pid$target:libc.so.6:free:entry,
pid$target:libc.so.6:realloc:entry
/held[arg0]/
{
	@bytes[uaddr(holder[arg0])] = sum(-held[arg0]);
	@blocks[uaddr(holder[arg0])] = sum(-1);
	held[arg0] = 0;
	holder[arg0] = 0;
}

/* Not arg1: calloc ends with a jump to memset, where the register has the block, too. */
pid$target:libc.so.6:malloc:return,
pid$target:libc.so.6:calloc:return,
pid$target:libc.so.6:realloc:return
/self->size && uregs[R_RAX] != 0/
{
	@bytes[uaddr(self->caller)] = sum(self->size);
	@blocks[uaddr(self->caller)] = sum(1);
	held[uregs[R_RAX]] = self->size;
	holder[uregs[R_RAX]] = self->caller;
}

pid$target:libc.so.6:malloc:return,
pid$target:libc.so.6:calloc:return,
pid$target:libc.so.6:realloc:return
{
	self->size = 0;
	self->caller = 0;
}

dtrace:::END
{
	printf("\n%12s %8s  %s\n", "BYTES", "BLOCKS", "CALLER");
	printa("%@12d %@8d  %A\n", @bytes, @blocks);
}
