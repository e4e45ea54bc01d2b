/*
 * The probes of fsinfo: operations of file systems. Names: the published documentation of illumos.
 * Places: the functions of Linux's VFS, 5.10 to 6.12. args[0] is the file, args[1] the result: the
 * bytes that were read or written, or the number of the error. Operations on names fire when they
 * begin, and have no result yet. Since 5.12 these functions take a map of users (of a mount, since
 * 6.3) before all else.
 */
#pragma D depends_on module vmlinux
#pragma D depends_on library io.d

provider fsinfo {
	probe open(struct file *file, int result)
	    : (fileinfo_t *file, int result)
	    = fbt::do_dentry_open:entry { self->file = arg0; }
	    -> fbt::do_dentry_open:return { file = self->file; result = -arg1; };
	probe close(struct file *file, int result)
	    : (fileinfo_t *file, int result)
	    = fbt::filp_flush:entry | fbt::filp_close:entry { file = args[0]; result = 0; };
	probe read(struct file *file, long result)
	    : (fileinfo_t *file, long result)
	    = fbt::vfs_read:entry { self->file = arg0; }
	    -> fbt::vfs_read:return { file = self->file; result = arg1; };
	probe read(struct file *file, long result)
	    : (fileinfo_t *file, long result)
	    = fbt::vfs_readv:entry { self->file = arg0; }
	    -> fbt::vfs_readv:return { file = self->file; result = arg1; };
	probe write(struct file *file, long result)
	    : (fileinfo_t *file, long result)
	    = fbt::vfs_write:entry { self->file = arg0; }
	    -> fbt::vfs_write:return { file = self->file; result = arg1; };
	probe write(struct file *file, long result)
	    : (fileinfo_t *file, long result)
	    = fbt::vfs_writev:entry { self->file = arg0; }
	    -> fbt::vfs_writev:return { file = self->file; result = arg1; };
	probe readdir(struct file *file, int result)
	    : (fileinfo_t *file, int result)
	    = fbt::iterate_dir:entry { self->file = arg0; }
	    -> fbt::iterate_dir:return { file = self->file; result = -arg1; };
	probe fsync(struct file *file, int result)
	    : (fileinfo_t *file, int result)
	    = fbt::vfs_fsync_range:entry { self->file = arg0; }
	    -> fbt::vfs_fsync_range:return { file = self->file; result = -arg1; };
	probe seek(struct file *file, int result)
	    : (fileinfo_t *file, int result)
	    = fbt::vfs_llseek:entry { self->file = arg0; }
	    -> fbt::vfs_llseek:return {
		file = self->file;
		result = (long)arg1 < 0 ? -arg1 : 0;
	    };
	probe space(struct file *file, int result)
	    : (fileinfo_t *file, int result)
	    = fbt::vfs_fallocate:entry { self->file = arg0; }
	    -> fbt::vfs_fallocate:return { file = self->file; result = -arg1; };

	/* Of files that are made by open(), mknod() and bind(). */
	probe create(struct dentry *entry, int result)
	    : (fileinfo_t *entry, int result)
	    = fbt::security_inode_create:entry { entry = args[1]; result = 0; };
	probe create(struct dentry *entry, int result)
	    : (fileinfo_t *entry, int result)
	    = fbt::security_inode_mknod:entry { entry = args[1]; result = 0; };
	probe remove(struct dentry *entry, int result)
	    : (fileinfo_t *entry, int result)
	    = fbt::vfs_unlink:entry { entry = args[2]; entry = args[1]; result = 0; };
	probe mkdir(struct dentry *entry, int result)
	    : (fileinfo_t *entry, int result)
	    = fbt::vfs_mkdir:entry { entry = args[2]; entry = args[1]; result = 0; };
	probe rmdir(struct dentry *entry, int result)
	    : (fileinfo_t *entry, int result)
	    = fbt::vfs_rmdir:entry { entry = args[2]; entry = args[1]; result = 0; };
	probe symlink(struct dentry *entry, int result)
	    : (fileinfo_t *entry, int result)
	    = fbt::vfs_symlink:entry { entry = args[2]; entry = args[1]; result = 0; };
	probe link(struct dentry *entry, int result)
	    : (fileinfo_t *entry, int result)
	    = fbt::vfs_link:entry { entry = args[0]; result = 0; };
	/* The old name. */
	probe rename(struct dentry *entry, int result)
	    : (fileinfo_t *entry, int result)
	    = fbt::vfs_rename:entry {
		entry = ((struct renamedata *)arg0)->old_dentry;
		entry = (struct dentry *)arg1;
		result = 0;
	    };
	probe setattr(struct dentry *entry, int result)
	    : (fileinfo_t *entry, int result)
	    = fbt::notify_change:entry { entry = args[1]; entry = args[0]; result = 0; };
	probe getattr(struct dentry *entry, int result)
	    : (fileinfo_t *entry, int result)
	    = fbt::vfs_getattr_nosec:entry {
		entry = ((struct path *)arg0)->dentry;
		result = 0;
	    };

	probe access() absent "Linux asks for each step of a path; nearest: fbt::inode_permission:entry";
	probe addmap() absent "Linux maps in one step; nearest: fsinfo:::map";
	probe cmp() absent "Linux compares inodes by their address; there is nothing nearer";
	probe delmap() absent "Linux does not tell file systems of it; nearest: fbt::__vm_munmap:entry";
	probe dispose() absent "pages are the page cache's own; nearest: sdt:filemap::mm_filemap_delete_from_page_cache";
	probe dump() absent "Linux does not dump to files; there is nothing nearer";
	probe getpage() absent "pages are the page cache's own; nearest: fbt::filemap_fault:entry";
	probe inactive() absent "nearest: fbt::evict:entry, of inodes that leave memory";
	probe ioctl() absent "Linux does not pass one place; nearest: syscall::ioctl:entry";
	probe lookup() absent "most names are found in the dcache; nearest: fbt::__lookup_slow:entry";
	probe map() absent "nearest: fbt::security_mmap_file:entry";
	probe pageio() absent "nearest: io:::start";
	probe pathconf() absent "Linux answers in the C library; nearest: syscall::statfs:entry";
	probe poll() absent "nearest: syscall::poll:entry";
	probe putpage() absent "nearest: fbt::do_writepages:entry";
	probe readlink() absent "nearest: syscall::readlink:entry, syscall::readlinkat:entry";
	probe rwlock() absent "locks are the inode's own; nearest: lockstat:::rw-acquire";
	probe rwunlock() absent "locks are the inode's own; nearest: lockstat:::rw-release";
};
