/*
 * Files and block requests of Linux guests, by the kernel's own types. Of a member that stands here
 * twice the first counts that the kernel has the types for: before 5.12 a bio leads to its disk,
 * and before 6.12 a flag says that a page is the slab allocator's. Since 6.18 a file system's mounts are no
 * list_head; the newest kernels call more of a page and a dentry otherwise.
 */
#pragma D depends_on library io.d
#pragma D depends_on library errno.d
#pragma D depends_on module vmlinux

this struct page *__page;
this struct inode *__inode;

/*
 * A bio is worked through from its first vector on, and at its end has a size of 0: how much lies
 * after bi_idx, and all of it. A clone has no vectors of its own.
 */
inline uint64_t __bio_vectors[struct bio *B, int count] = __sum32((uintptr_t)B->bi_io_vec +
    offsetof(struct bio_vec, bv_len), sizeof (struct bio_vec), count);
inline uint64_t __bio_behind[struct bio *B] = (B->bi_flags & 1 << BIO_CLONED) != 0 ? 0 :
    __bio_vectors[B, B->bi_iter.bi_idx] + B->bi_iter.bi_bvec_done;
inline uint64_t __bio_size[struct bio *B] = B->bi_iter.bi_size == 0 ? __bio_vectors[B, B->bi_vcnt] :
    B->bi_iter.bi_size + __bio_behind[B];
/* A bio of a partition is moved to the whole disk's sectors on its way. */
inline uint64_t __bio_sector[struct bio *B] = B->bi_iter.bi_sector - __bio_behind[B] / 512 -
    ((B->bi_flags & 1 << BIO_REMAPPED) != 0 ? B->bi_bdev->bd_start_sect : 0);

inline struct page *__bio_page[struct bio *B] = B->bi_io_vec == NULL ||
    (B->bi_vcnt == 0 && (B->bi_flags & 1 << BIO_CLONED) == 0) ?
    (struct page *)NULL : B->bi_io_vec->bv_page;
/* Of direct I/O, whose pages are the process's: what was asked, and of which file. */
inline struct kiocb *__bio_iocb[struct bio *B] = ((struct iomap_dio *)B->bi_private)->iocb;
inline struct file *__bio_file[struct bio *B] =
    (uintptr_t)B->bi_end_io == (uintptr_t)&`iomap_dio_bio_end_io ? __bio_iocb[B]->ki_filp :
    (struct file *)NULL;

/* A part of a larger page leads to its head, which knows what all of it is for. */
inline struct page *__page_head[struct page *P] = (P->compound_head & 1) != 0 ?
    (struct page *)(P->compound_head - 1) : P;
inline struct page *__page_head_by_info[struct page *P] = (P->compound_info & 1) == 0 ? P :
    P->compound_info >= 0xffffffff00000000 ? (struct page *)((uintptr_t)P & P->compound_info) :
    (struct page *)(P->compound_info - 1);
inline int __is_slab[struct page *P] = P->page_type >> 24 == PGTY_slab;
inline int __has_slab_flag[struct page *P] = (P->flags & 1 << PG_slab) != 0;
inline int __is_of_file[struct page *P] =
    P->mapping != NULL && ((uintptr_t)P->mapping & 3) == 0 && P->mapping->host != NULL;
inline int __is_anonymous[struct page *P] = ((uintptr_t)P->mapping & 1) != 0;

/* `head` and `slab`, of this->__page, are as the kernel has them. */
inline int __bio_flags[struct bio *B, struct page *head, int slab] =
    ((B->bi_opf & 1) != 0 ? B_WRITE : B_READ) | (B->bi_status != 0 ? B_ERROR : 0) |
    ((B->bi_opf & 1 << __REQ_SYNC) == 0 && (B->bi_opf & 1) != 0 ||
    (B->bi_opf & 1 << __REQ_RAHEAD) != 0 ? B_ASYNC : 0) |
    (this->__page = __bio_page[B], this->__page == NULL ? 0 : (this->__page = head, slab) ? 0 :
    __is_anonymous[this->__page] ? B_PHYS : __is_of_file[this->__page] ? B_PAGEIO : 0) |
    (probename == "done" || probename == "wait-done" ? B_DONE : B_BUSY);

translator bufinfo_t < struct bio *B > {
	b_flags = __bio_flags[B, __page_head[this->__page], __is_slab[this->__page]];
	b_flags = __bio_flags[B, __page_head[this->__page], __has_slab_flag[this->__page]];
	b_flags = __bio_flags[B, __page_head_by_info[this->__page], __is_slab[this->__page]];
	b_bcount = __bio_size[B];
	b_addr = (this->__page = __bio_page[B], this->__page == NULL ? 0 :
	    *(uintptr_t *)&`page_offset_base + B->bi_io_vec->bv_offset +
	    ((uintptr_t)this->__page - *(uintptr_t *)&`vmemmap_base) / sizeof (struct page) * 4096);
	b_addr = 0;
	b_lblkno = __bio_sector[B];
	b_blkno = __bio_sector[B];
	b_lblkno = B->bi_iter.bi_sector - __bio_behind[B] / 512;
	b_blkno = B->bi_iter.bi_sector - __bio_behind[B] / 512;
	b_resid = B->bi_status != 0 ? __bio_size[B] : 0;
	b_bufsize = __bio_size[B];
	b_iodone = (uintptr_t)B->bi_end_io;
	/* blk_status_t (include/linux/blk_types.h), as blk_status_to_errno() has it. */
	b_error = B->bi_status == 0 ? 0 : B->bi_status == 1 ? EOPNOTSUPP :
	    B->bi_status == 2 ? ETIMEDOUT : B->bi_status == 3 ? ENOSPC :
	    B->bi_status == 4 ? ENOLINK : B->bi_status == 5 ? EREMOTEIO :
	    B->bi_status == 6 ? EBADE : B->bi_status == 7 ? ENODATA :
	    B->bi_status == 8 ? EILSEQ : B->bi_status == 9 ? ENOMEM :
	    B->bi_status == 12 ? EAGAIN : B->bi_status == 13 ? EBUSY : B->bi_status == 16 ? ENODEV : EIO;
	b_edev = B->bi_bdev->bd_dev;
	b_edev = B->bi_disk->major << 20 | (B->bi_disk->first_minor + B->bi_partno);
};

translator devinfo_t < struct bio *B > {
	dev_major = B->bi_bdev->bd_dev >> 20;
	dev_minor = B->bi_bdev->bd_dev & 0xfffff;
	dev_major = B->bi_disk->major;
	dev_minor = B->bi_disk->first_minor + B->bi_partno;
	dev_instance = B->bi_bdev->bd_disk->minors == 0 ? 0 :
	    B->bi_bdev->bd_disk->first_minor / B->bi_bdev->bd_disk->minors;
	dev_instance = B->bi_disk->minors == 0 ? 0 : B->bi_disk->first_minor / B->bi_disk->minors;
	/* A disk's driver is its parent device's, or the module that has its functions. */
	dev_name = B->bi_bdev->bd_disk->part0->bd_device.parent != NULL &&
	    B->bi_bdev->bd_disk->part0->bd_device.parent->driver != NULL ?
	    stringof(B->bi_bdev->bd_disk->part0->bd_device.parent->driver->name) :
	    B->bi_bdev->bd_disk->fops->owner != NULL ?
	    stringof(B->bi_bdev->bd_disk->fops->owner->name) : stringof(B->bi_bdev->bd_disk->disk_name);
	dev_statname = stringof(B->bi_bdev->bd_device.kobj.name);
	dev_pathname = strjoin("/dev/", stringof(B->bi_bdev->bd_device.kobj.name));
	dev_name = stringof(B->bi_disk->disk_name);
	dev_statname = stringof(B->bi_disk->disk_name);
	dev_pathname = strjoin("/dev/", B->bi_disk->disk_name);
};

/* A directory entry of an inode, and a mount of its file system, as far as there are any. */
inline struct dentry *__inode_dentry[struct inode *I] = I == NULL || I->i_dentry.first == NULL ?
    (struct dentry *)NULL :
    (struct dentry *)((uintptr_t)I->i_dentry.first - offsetof(struct dentry, d_u));
inline struct dentry *__inode_alias[struct inode *I] = I == NULL || I->i_dentry.first == NULL ?
    (struct dentry *)NULL :
    (struct dentry *)((uintptr_t)I->i_dentry.first - offsetof(struct dentry, d_alias));
inline struct vfsmount *__inode_mount[struct inode *I] =
    I == NULL || (uintptr_t)I->i_sb->s_mounts.next == (uintptr_t)&I->i_sb->s_mounts ?
    (struct vfsmount *)NULL : &((struct mount *)((uintptr_t)I->i_sb->s_mounts.next -
    offsetof(struct mount, mnt_instance)))->mnt;
inline struct vfsmount *__inode_first_mount[struct inode *I] =
    I == NULL || I->i_sb->s_mounts == NULL ? (struct vfsmount *)NULL : &I->i_sb->s_mounts->mnt;

/*
 * The inode that a page belongs to, where it is no block device's: those pages are the metadata of
 * file systems. `slab` is whether the page is the slab allocator's.
 */
inline struct inode *__page_inode[struct page *P, int slab] = P == NULL || slab ||
    !__is_of_file[P] || (P->mapping->host->i_mode & 0170000) == 0060000 ? (struct inode *)NULL :
    P->mapping->host;

/* The members of a fileinfo_t are of this: an open file, or the file that a page belongs to. */
inline int __look_at_file[struct file *F] = (this->__file = F,
    this->__inode = this->__file == NULL ? (struct inode *)NULL : this->__file->f_inode,
    this->__dentry = this->__file == NULL ? (struct dentry *)NULL : this->__file->f_path.dentry,
    this->__mount = this->__file == NULL ? (struct vfsmount *)NULL : this->__file->f_path.mnt, 1);
inline int __look_at_bio[struct bio *B, struct page *head, int slab, struct dentry *dentry,
    struct vfsmount *mount] = __bio_file[B] != NULL ? __look_at_file[__bio_file[B]] :
    (this->__file = (struct file *)NULL, this->__page = __bio_page[B],
    this->__page = this->__page == NULL ? this->__page : head,
    this->__inode = __page_inode[this->__page, slab],
    this->__dentry = dentry, this->__mount = mount, 1);
/* By the kernels that have it so. */
inline int __look[struct bio *B] = __look_at_bio[B, __page_head[this->__page],
    __is_slab[this->__page], __inode_dentry[this->__inode], __inode_mount[this->__inode]];
inline int __look_before_6_12[struct bio *B] = __look_at_bio[B, __page_head[this->__page],
    __has_slab_flag[this->__page], __inode_dentry[this->__inode], __inode_mount[this->__inode]];
inline int __look_since_6_18[struct bio *B] = __look_at_bio[B, __page_head[this->__page],
    __is_slab[this->__page], __inode_dentry[this->__inode], __inode_first_mount[this->__inode]];
inline int __look_newest[struct bio *B] = __look_at_bio[B, __page_head_by_info[this->__page],
    __is_slab[this->__page], __inode_alias[this->__inode], __inode_first_mount[this->__inode]];

inline string __unknown = this->__inode == NULL ? "<none>" : "<unknown>";
inline string __found_path = this->__dentry == NULL || this->__mount == NULL ? __unknown :
    (this->__path = d_path(this->__dentry, this->__mount), this->__path == "" ? "<unknown>" : this->__path);
/* The root of a mount has no name of its own: what it is mounted upon has. */
inline string __found_name = this->__dentry == NULL ? __unknown :
    this->__mount != NULL && this->__dentry == this->__mount->mnt_root ?
    basename(d_path(this->__dentry, this->__mount)) :
    (this->__path = stringof(this->__dentry->d_name.name), this->__path == "" ? "<unknown>" : this->__path);
inline string __found_directory = this->__dentry == NULL || this->__mount == NULL ? __unknown :
    (this->__path = d_path(this->__dentry, this->__mount),
    index(this->__path, "/") == 0 ? dirname(this->__path) : "<unknown>");
inline string __found_system = this->__inode == NULL ? "<none>" :
    stringof(this->__inode->i_sb->s_type->name);
inline string __found_mount = this->__mount == NULL ? __unknown :
    d_path(this->__mount->mnt_root, this->__mount);
inline int64_t __found_offset[struct bio *B, uint64_t index] = this->__file != NULL ? __bio_iocb[B]->ki_pos :
    this->__inode == NULL ? 0 : index * 4096 + B->bi_io_vec->bv_offset +
    ((uintptr_t)B->bi_io_vec->bv_page - (uintptr_t)this->__page) / sizeof (struct page) * 4096;
inline int __found_flags = this->__file == NULL ? 0 : this->__file->f_flags;

translator fileinfo_t < struct bio *B > {
	fi_name = (__look[B], __found_name);
	fi_dirname = (__look[B], __found_directory);
	fi_pathname = (__look[B], __found_path);
	fi_offset = (__look[B], __found_offset[B, this->__page->index]);
	fi_fs = (__look[B], __found_system);
	fi_mount = (__look[B], __found_mount);
	fi_oflags = (__look[B], __found_flags);
	fi_name = (__look_before_6_12[B], __found_name);
	fi_dirname = (__look_before_6_12[B], __found_directory);
	fi_pathname = (__look_before_6_12[B], __found_path);
	fi_offset = (__look_before_6_12[B], __found_offset[B, this->__page->index]);
	fi_fs = (__look_before_6_12[B], __found_system);
	fi_mount = (__look_before_6_12[B], __found_mount);
	fi_oflags = (__look_before_6_12[B], __found_flags);
	fi_name = (__look_since_6_18[B], __found_name);
	fi_dirname = (__look_since_6_18[B], __found_directory);
	fi_pathname = (__look_since_6_18[B], __found_path);
	fi_offset = (__look_since_6_18[B], __found_offset[B, this->__page->__folio_index]);
	fi_fs = (__look_since_6_18[B], __found_system);
	fi_mount = (__look_since_6_18[B], __found_mount);
	fi_oflags = (__look_since_6_18[B], __found_flags);
	fi_name = (__look_newest[B], __found_name);
	fi_dirname = (__look_newest[B], __found_directory);
	fi_pathname = (__look_newest[B], __found_path);
	fi_offset = (__look_newest[B], __found_offset[B, this->__page->__folio_index]);
	fi_fs = (__look_newest[B], __found_system);
	fi_mount = (__look_newest[B], __found_mount);
	fi_oflags = (__look_newest[B], __found_flags);
};

translator fileinfo_t < struct file *F > {
	fi_name = (__look_at_file[F], __found_name);
	fi_dirname = (__look_at_file[F], __found_directory);
	fi_pathname = (__look_at_file[F], __found_path);
	fi_offset = F == NULL ? 0 : F->f_pos;
	fi_fs = (__look_at_file[F], __found_system);
	fi_mount = (__look_at_file[F], __found_mount);
	fi_oflags = F == NULL ? 0 : F->f_flags;
};

/* A name, of which there may be no file yet, in a mount of its file system. */
inline struct inode *__inode_near[struct dentry *D] = D->d_inode != NULL ? D->d_inode :
    D->d_parent->d_inode;
inline int __look_at_entry[struct dentry *D, struct vfsmount *mount] = (this->__file = (struct file *)NULL,
    this->__dentry = D, this->__mount = mount, 1);

translator fileinfo_t < struct dentry *D > {
	fi_name = (this->__inode = __inode_near[D], __look_at_entry[D, __inode_mount[this->__inode]], __found_name);
	fi_dirname = (this->__inode = __inode_near[D], __look_at_entry[D, __inode_mount[this->__inode]], __found_directory);
	fi_pathname = (this->__inode = __inode_near[D], __look_at_entry[D, __inode_mount[this->__inode]], __found_path);
	fi_fs = (this->__inode = __inode_near[D], __look_at_entry[D, __inode_mount[this->__inode]], __found_system);
	fi_mount = (this->__inode = __inode_near[D], __look_at_entry[D, __inode_mount[this->__inode]], __found_mount);
	fi_name = (this->__inode = __inode_near[D], __look_at_entry[D, __inode_first_mount[this->__inode]], __found_name);
	fi_dirname = (this->__inode = __inode_near[D], __look_at_entry[D, __inode_first_mount[this->__inode]], __found_directory);
	fi_pathname = (this->__inode = __inode_near[D], __look_at_entry[D, __inode_first_mount[this->__inode]], __found_path);
	fi_fs = (this->__inode = __inode_near[D], __look_at_entry[D, __inode_first_mount[this->__inode]], __found_system);
	fi_mount = (this->__inode = __inode_near[D], __look_at_entry[D, __inode_first_mount[this->__inode]], __found_mount);
	fi_offset = 0;
	fi_oflags = 0;
};

inline fileinfo_t fds[int fd] = xlate <fileinfo_t> (
    fd >= 0 && fd < curthread->files->fdt->max_fds ? curthread->files->fdt->fd[fd] : NULL);

inline string cwd = d_path(&curthread->fs->pwd);
inline string root = d_path(&curthread->fs->root);
