/*
 * The probes of io: block requests, which are bios. Linux 5.10 to 6.12.
 *
 * A bio ends in bio_endio() whichever device it was for, unless others of its chain go on
 * (__bi_remaining). Where a bio is larger than a request may be, its beginning is split off: a clone
 * (bit 1 of bi_flags), which was not asked for and ends into the bio itself (bi_private), so that this
 * ends within the call for the last of its parts. A flush for which a device has no use (its
 * REQ_PREFLUSH, bit 18, was taken away) ends without having been queued. A driver that makes a clone of
 * a bio for its own accounting (md_account_bio()) has the clone's memory (bi_pool) inside of its
 * structure for the device (gendisk.private_data), and leaves it addressed to that device: it was never
 * queued. One that the driver sends on is addressed to another device, and counts there.
 *
 * Until 5.10 the tracepoint block_bio_queue has the queue before the bio; bi_disk is before 5.12.
 */
#pragma D depends_on module vmlinux
#pragma D depends_on library io.d

provider io {
	probe start(struct bio *bio)
	    : (bufinfo_t *bio, devinfo_t *bio, fileinfo_t *bio)
	    = sdt:::block_bio_queue { bio = args[1]; bio = args[0]; };
	probe wait__start(struct bio *bio)
	    : (bufinfo_t *bio, devinfo_t *bio, fileinfo_t *bio)
	    = fbt::submit_bio_wait:entry { bio = args[0]; };
	probe wait__done(struct bio *bio)
	    : (bufinfo_t *bio, devinfo_t *bio, fileinfo_t *bio)
	    = fbt::submit_bio_wait:entry { self->bio = args[0]; }
	    -> fbt::submit_bio_wait:return { bio = self->bio; };
	probe done(struct bio *bio)
	    : (bufinfo_t *bio, devinfo_t *bio, fileinfo_t *bio)
	    = fbt::bio_endio:entry
	    /bio->__bi_remaining.counter == 1 &&
	      ((uintptr_t)bio->bi_end_io != (uintptr_t)&`bio_chain_endio || (bio->bi_flags & 2) == 0) &&
	      ((bio->bi_flags & 2) == 0 || this->pool < 0 || this->pool > 4095) &&
	      (bio->bi_io_vec != 0 || (bio->bi_opf & 0x400ff) != 1)/ {
		bio = args[0];
		this->driver = bio->bi_bdev->bd_disk->private_data;
		this->driver = bio->bi_disk->private_data;
		this->pool = (long)((uintptr_t)bio->bi_pool - (uintptr_t)this->driver);
	    };
	probe done(struct bio *bio)
	    : (bufinfo_t *bio, devinfo_t *bio, fileinfo_t *bio)
	    = fbt::bio_endio:entry
	    /this->part->__bi_remaining.counter == 1 &&
	      (uintptr_t)this->part->bi_end_io == (uintptr_t)&`bio_chain_endio &&
	      bio->__bi_remaining.counter == 1 &&
	      ((uintptr_t)bio->bi_end_io != (uintptr_t)&`bio_chain_endio || (bio->bi_flags & 2) == 0)/ {
		this->part = (struct bio *)args[0];
		bio = this->part->bi_private;
	    };
	probe done(struct bio *bio)
	    : (bufinfo_t *bio, devinfo_t *bio, fileinfo_t *bio)
	    = fbt::bio_endio:entry
	    /this->part->__bi_remaining.counter == 1 &&
	      (uintptr_t)this->part->bi_end_io == (uintptr_t)&`bio_chain_endio &&
	      this->middle->__bi_remaining.counter == 1 &&
	      (uintptr_t)this->middle->bi_end_io == (uintptr_t)&`bio_chain_endio &&
	      bio->__bi_remaining.counter == 1 &&
	      ((uintptr_t)bio->bi_end_io != (uintptr_t)&`bio_chain_endio || (bio->bi_flags & 2) == 0)/ {
		this->part = (struct bio *)args[0];
		this->middle = (struct bio *)this->part->bi_private;
		bio = this->middle->bi_private;
	    };
};
