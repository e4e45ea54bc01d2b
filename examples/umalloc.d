#!/usr/bin/env -S ringside -s
/*
 * umalloc.d - sizes of a process's allocations, and the stacks that ask for most bytes.
 *
 * USAGE: ringside --attach TARGET -s umalloc.d -p PID
 *
 * Calls of malloc, calloc and realloc in the C library. Ten stacks are printed; the one with most
 * bytes comes last. Memory that is freed later counts, too: uleaks.d shows what is not freed.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

/* A realloc without an old block is a malloc, which it calls. */
pid$target:libc.so.6:malloc:entry,
pid$target:libc.so.6:calloc:entry,
pid$target:libc.so.6:realloc:entry
/probefunc != "realloc" || arg0 != 0/
{
	this->size = probefunc == "malloc" ? arg0 :
	    probefunc == "calloc" ? arg0 * arg1 : arg1;
	@sizes[probefunc] = quantize(this->size);
	@bytes[ustack(8)] = sum(this->size);
}

dtrace:::END
{
	printf("\nSIZES IN BYTES\n");
	printa(@sizes);
	trunc(@bytes, 10);
	printf("BYTES BY STACK\n");
	printa(@bytes);
}
