#!/usr/bin/env -S ringside -s
/*
 * biosizes.d - sizes of block requests, by device and process.
 *
 * USAGE: ringside --attach TARGET -s biosizes.d
 *
 * Bytes of each request as a file system hands it to a device. Writes are often handed over later,
 * by a thread of the kernel.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

fbt::submit_bio_noacct:entry
{
	@[stringof(args[0]->bi_bdev->bd_disk->disk_name), execname] =
	    quantize(args[0]->bi_iter.bi_size);
}
