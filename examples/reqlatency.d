#!/usr/bin/env -S ringside -s
/*
 * reqlatency.d - latency of block requests, by device.
 *
 * USAGE: ringside --attach TARGET -s reqlatency.d
 *
 * Microseconds from the moment in which a request is given to its driver to its end.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

sdt:block::block_rq_issue
{
	issued[arg0] = timestamp;
}

sdt:block::block_rq_complete
/issued[arg0]/
{
	@[stringof(args[0]->q->disk->disk_name)] = quantize((timestamp - issued[arg0]) / 1000);
	issued[arg0] = 0;
}
