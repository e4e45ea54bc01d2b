#!/usr/bin/env -S ringside -s
/*
 * runqlat.d - how long threads that could run wait for a processor.
 *
 * USAGE: ringside --attach TARGET -s runqlat.d
 *
 * Nanoseconds from the moment in which a thread is put on a run queue until it runs, by processor.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

sched:::enqueue
{
	since[args[0]->pr_lwpid] = timestamp;
}

sched:::on-cpu
/since[tid]/
{
	@[cpu] = quantize(timestamp - since[tid]);
	since[tid] = 0;
}
