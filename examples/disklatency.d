#!/usr/bin/env -S ringside -s
/*
 * disklatency.d - latency of requests to disks, by disk and direction.
 *
 * USAGE: ringside --attach TARGET -s disklatency.d
 *
 * Microseconds from the moment in which a request is handed over to its end, the device's queue
 * with them. (reqlatency.d leaves the queue out.)
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

io:::start
{
	since[arg0] = timestamp;
}

io:::done
/since[arg0]/
{
	@[args[1]->dev_statname, args[0]->b_flags & B_READ ? "read" : "write"] =
	    quantize((timestamp - since[arg0]) / 1000);
	since[arg0] = 0;
}
