#!/usr/bin/env -S ringside -s
/*
 * diskseeks.d - how far apart on a disk one request begins from where the one before it ended.
 *
 * USAGE: ringside --attach TARGET -s diskseeks.d
 *
 * Sectors of 512 bytes; 0 is the row of requests that go on where the last one ended.
 */

#pragma D option quiet

uint64_t last[uint64_t];

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

io:::start
/args[0]->b_bcount && last[args[0]->b_edev]/
{
	this->apart = (int64_t)(args[0]->b_blkno - last[args[0]->b_edev]);
	@[args[1]->dev_statname] = quantize(this->apart < 0 ? -this->apart : this->apart);
}

io:::start
/args[0]->b_bcount/
{
	last[args[0]->b_edev] = args[0]->b_blkno + args[0]->b_bcount / 512;
}
