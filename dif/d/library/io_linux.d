/* Files and block requests of Linux guests, by the kernel's own types. */
#pragma D depends_on library io.d
#pragma D depends_on module vmlinux

translator bufinfo_t < struct bio *B > {
	b_flags = B->bi_opf & 1 ? B_WRITE : B_READ;
	b_bcount = B->bi_iter.bi_size;
	b_addr = (uintptr_t)B;
	b_lblkno = B->bi_iter.bi_sector;
	b_blkno = B->bi_iter.bi_sector;
	b_resid = 0;
	b_bufsize = B->bi_iter.bi_size;
	b_error = B->bi_status;
	b_edev = B->bi_bdev->bd_dev;
};

translator devinfo_t < struct bio *B > {
	dev_major = B->bi_bdev->bd_dev >> 20;
	dev_minor = B->bi_bdev->bd_dev & 0xfffff;
	dev_instance = 0;
	dev_name = stringof(B->bi_bdev->bd_disk->disk_name);
	dev_statname = stringof(B->bi_bdev->bd_disk->disk_name);
	dev_pathname = strjoin("/dev/", B->bi_bdev->bd_disk->disk_name);
};

translator fileinfo_t < struct file *F > {
	fi_name = F == NULL ? "<none>" : stringof(F->f_path.dentry->d_name.name);
	fi_dirname = F == NULL ? "<none>" : stringof(F->f_path.dentry->d_parent->d_name.name);
	fi_pathname = F == NULL ? "<none>" : strjoin(strjoin(stringof(
	    F->f_path.dentry->d_parent->d_name.name), "/"), stringof(F->f_path.dentry->d_name.name));
	fi_offset = F == NULL ? 0 : F->f_pos;
	fi_fs = F == NULL ? "<none>" : stringof(F->f_path.mnt->mnt_sb->s_type->name);
	fi_mount = "<unknown>";
	fi_oflags = F == NULL ? 0 : F->f_flags;
};

inline fileinfo_t fds[int fd] = xlate <fileinfo_t> (
    fd >= 0 && fd < curthread->files->fdt->max_fds ? curthread->files->fdt->fd[fd] : NULL);

/* The last component only: the way to the root cannot be walked without loops. */
inline string cwd = stringof(curthread->fs->pwd.dentry->d_name.name);
inline string root = stringof(curthread->fs->root.dentry->d_name.name);
