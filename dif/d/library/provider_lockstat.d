/*
 * The probes of lockstat. Names and arguments: the published Dynamic Tracing Guide. Linux's mutex is the
 * adaptive lock, its rw_semaphore the readers/writer lock, its raw spinlock the spin lock.
 *
 * An acquisition that calls the slow path at the end of a function jumps there: then the slow function's
 * return is that of both. Kernels that do not preempt themselves inline _raw_spin_unlock, and _irq with
 * it (kernel/Kconfig.locks).
 *
 * Waiting begins and ends with static tracepoints, since 5.19, that say by flags how (LCB_F_* of
 * include/trace/events/lock.h): 1 spins, 2 a reader, 4 a writer, 32 a mutex. A mutex may spin, then
 * block, then spin again: that is blocking from the first time on. A real-time kernel's mutex is a
 * rt_mutex, its first member; a wait for one has the flag 8 alone, also where it spins for an owner that
 * runs. Its spin locks and semaphores wait by the same code, each source file with a copy of its own.
 *
 * Of a semaphore's count the lowest bit is a writer, bits 8 and up are the readers. Functions that tell
 * of contention for other locks are left out: a slow spin lock of somebody else's costs nothing then.
 */
#pragma D depends_on library lockstat.d
#pragma D depends_on module vmlinux

provider lockstat {
	probe adaptive__acquire(struct mutex *lock)
	    = fbt::mutex_lock:entry { self->lock = args[0]; }
	    -> fbt::mutex_lock:return { lock = self->lock; };
	probe adaptive__acquire(struct mutex *lock)
	    = fbt::mutex_lock_interruptible:entry { self->lock = args[0]; }
	    -> fbt::mutex_lock_interruptible:return /(int)arg1 == 0/ { lock = self->lock; };
	probe adaptive__acquire(struct mutex *lock)
	    = fbt::mutex_lock_killable:entry { self->lock = args[0]; }
	    -> fbt::mutex_lock_killable:return /(int)arg1 == 0/ { lock = self->lock; };
	probe adaptive__acquire(struct mutex *lock)
	    = fbt::mutex_trylock:entry { self->lock = args[0]; }
	    -> fbt::mutex_trylock:return /(int)arg1 == 1/ { lock = self->lock; };
	probe adaptive__acquire(struct mutex *lock)
	    = fbt::__mutex_lock:entry { self->lock = args[0]; }
	    -> fbt::__mutex_lock:return /(int)arg1 == 0/ { lock = self->lock; }
	    never_on "PREEMPT_RT";
	probe adaptive__acquire(struct mutex *lock)
	    = fbt::rt_mutex_slowlock:entry { self->lock = args[0]; }
	    -> fbt::rt_mutex_slowlock:return /(int)arg1 == 0/ { lock = self->lock; }
	    only_on "PREEMPT_RT"
	    fine_if_inlined "rt_mutex_slowlock";
	probe adaptive__acquire__error(struct mutex *lock, int error)
	    = fbt::__mutex_lock:entry | fbt::rt_mutex_slowlock:entry { self->lock = args[0]; }
	    -> fbt::__mutex_lock:return | fbt::rt_mutex_slowlock:return /error > 0/ {
		lock = self->lock;
		error = -arg1;
	    };
	probe adaptive__block(struct mutex *lock, uint64_t ns)
	    = sdt:::contention_begin /args[1] == 32/ { self->from[args[0]] = timestamp; }
	    -> sdt:::contention_end /args[1] == 0/ {
		lock = args[0];
		ns = timestamp - self->from[args[0]];
	    }
	    never_in "rwsem_down_*", "queued_*", "native_queued_*", "__pv_queued_*",
		"resilient_queued_*", "percpu_down_*", "__percpu_down_*", "__down_common*",
		"__rt_mutex_*", "rt_mutex_*"
	    never_on "PREEMPT_RT";
	probe adaptive__block(struct mutex *lock, uint64_t ns)
	    = sdt:::contention_begin /args[1] == 8/ { self->from[args[0]] = timestamp; }
	    -> sdt:::contention_end /args[1] == 0/ {
		lock = args[0];
		ns = timestamp - self->from[args[0]];
	    }
	    never_in "rtlock_*", "rt_read_*", "rt_write_*", "rwbase_*", "__rwbase_*", "queued_*",
		"native_queued_*", "__pv_queued_*", "resilient_queued_*", "percpu_down_*",
		"__percpu_down_*", "__down_common*"
	    never_called_by "rwbase_*", "__rwbase_*", "down_read*", "down_write*"
	    only_on "PREEMPT_RT";
	probe adaptive__spin(struct mutex *lock, uint64_t ns)
	    = sdt:::contention_begin /args[1] == 32 || args[1] == 33/ {
		self->from[args[0]] = timestamp;
		self->blocked[args[0]] |= args[1] == 32;
	    }
	    -> sdt:::contention_end /args[1] == 0 && self->blocked[args[0]] == 0/ {
		lock = args[0];
		ns = timestamp - self->from[args[0]];
	    }
	    never_in "rwsem_down_*", "queued_*", "native_queued_*", "__pv_queued_*",
		"resilient_queued_*", "percpu_down_*", "__percpu_down_*", "__down_common*",
		"__rt_mutex_*", "rt_mutex_*"
	    never_on "PREEMPT_RT";
	probe adaptive__spin()
	    absent "a real-time kernel does not tell who spins; nearest: lockstat:::adaptive-block"
	    only_on "PREEMPT_RT";
	probe adaptive__release(struct mutex *lock)
	    = fbt::mutex_unlock:entry { lock = args[0]; };
	probe spin__acquire(struct raw_spinlock *lock)
	    = fbt::_raw_spin_lock:entry { self->lock = args[0]; }
	    -> fbt::_raw_spin_lock:return { lock = self->lock; };
	probe spin__acquire(struct raw_spinlock *lock)
	    = fbt::_raw_spin_lock_bh:entry { self->lock = args[0]; }
	    -> fbt::_raw_spin_lock_bh:return { lock = self->lock; };
	probe spin__acquire(struct raw_spinlock *lock)
	    = fbt::_raw_spin_lock_irq:entry { self->lock = args[0]; }
	    -> fbt::_raw_spin_lock_irq:return { lock = self->lock; };
	probe spin__acquire(struct raw_spinlock *lock)
	    = fbt::_raw_spin_lock_irqsave:entry { self->lock = args[0]; }
	    -> fbt::_raw_spin_lock_irqsave:return { lock = self->lock; };
	probe spin__acquire(struct raw_spinlock *lock)
	    = fbt::_raw_spin_trylock:entry { self->lock = args[0]; }
	    -> fbt::_raw_spin_trylock:return /(int)arg1 == 1/ { lock = self->lock; };
	probe spin__acquire(struct raw_spinlock *lock)
	    = fbt::_raw_spin_trylock_bh:entry { self->lock = args[0]; }
	    -> fbt::_raw_spin_trylock_bh:return /(int)arg1 == 1/ { lock = self->lock; };
	probe spin__spin(struct raw_spinlock *lock, uint64_t ns)
	    = fbt::native_queued_spin_lock_slowpath:entry { self->lock = args[0]; self->from = timestamp; }
	    -> fbt::native_queued_spin_lock_slowpath:return {
		lock = self->lock;
		ns = timestamp - self->from;
	    };
	probe spin__spin(struct raw_spinlock *lock, uint64_t ns)
	    = fbt::__pv_queued_spin_lock_slowpath:entry { self->lock = args[0]; self->from = timestamp; }
	    -> fbt::__pv_queued_spin_lock_slowpath:return {
		lock = self->lock;
		ns = timestamp - self->from;
	    };
	probe spin__release(struct raw_spinlock *lock)
	    = fbt::_raw_spin_unlock:entry { lock = args[0]; };
	probe spin__release(struct raw_spinlock *lock)
	    = fbt::_raw_spin_unlock_bh:entry { lock = args[0]; }
	    unless_inlined "_raw_spin_unlock";
	probe spin__release(struct raw_spinlock *lock)
	    = fbt::_raw_spin_unlock_irq:entry { lock = args[0]; }
	    unless_inlined "_raw_spin_unlock";
	probe spin__release(struct raw_spinlock *lock)
	    = fbt::_raw_spin_unlock_irqrestore:entry { lock = args[0]; }
	    unless_inlined "_raw_spin_unlock";
	probe thread__spin() absent "Linux has no locks of threads; nearest: lockstat:::spin-spin";
	probe rw__acquire(struct rw_semaphore *lock, int mode)
	    = fbt::down_read:entry { self->lock = args[0]; }
	    -> fbt::down_read:return { lock = self->lock; mode = RW_READER; };
	probe rw__acquire(struct rw_semaphore *lock, int mode)
	    = fbt::down_read_interruptible:entry { self->lock = args[0]; }
	    -> fbt::down_read_interruptible:return /(int)arg1 == 0/ { lock = self->lock; mode = RW_READER; };
	probe rw__acquire(struct rw_semaphore *lock, int mode)
	    = fbt::down_read_killable:entry { self->lock = args[0]; }
	    -> fbt::down_read_killable:return /(int)arg1 == 0/ { lock = self->lock; mode = RW_READER; };
	probe rw__acquire(struct rw_semaphore *lock, int mode)
	    = fbt::down_read_trylock:entry { self->lock = args[0]; }
	    -> fbt::down_read_trylock:return /(int)arg1 == 1/ { lock = self->lock; mode = RW_READER; };
	probe rw__acquire(struct rw_semaphore *lock, int mode)
	    = fbt::down_write:entry { self->lock = args[0]; }
	    -> fbt::down_write:return { lock = self->lock; mode = RW_WRITER; };
	probe rw__acquire(struct rw_semaphore *lock, int mode)
	    = fbt::down_write_killable:entry { self->lock = args[0]; }
	    -> fbt::down_write_killable:return /(int)arg1 == 0/ { lock = self->lock; mode = RW_WRITER; };
	probe rw__acquire(struct rw_semaphore *lock, int mode)
	    = fbt::down_write_trylock:entry { self->lock = args[0]; }
	    -> fbt::down_write_trylock:return /(int)arg1 == 1/ { lock = self->lock; mode = RW_WRITER; };
	probe rw__block(struct rw_semaphore *lock, uint64_t ns, int mode, int was_written, long readers)
	    = sdt:::contention_begin /args[1] == 2/ {
		self->from[args[0]] = timestamp;
		self->count[args[0]] = ((struct rw_semaphore *)args[0])->count.counter;
	    }
	    -> sdt:::contention_end /args[1] == 0/ {
		lock = args[0];
		ns = timestamp - self->from[args[0]];
		mode = RW_READER;
		was_written = self->count[args[0]] & 1;
		readers = self->count[args[0]] >> 8;
	    }
	    never_in "rwsem_down_write_*", "__mutex_*", "__ww_mutex_*", "queued_*", "native_queued_*",
		"__pv_queued_*", "resilient_queued_*", "percpu_down_*", "__percpu_down_*",
		"__down_common*", "__rt_mutex_*", "rt_mutex_*";
	probe rw__block(struct rw_semaphore *lock, uint64_t ns, int mode, int was_written, long readers)
	    = sdt:::contention_begin /args[1] == 4/ {
		self->from[args[0]] = timestamp;
		self->count[args[0]] = ((struct rw_semaphore *)args[0])->count.counter;
	    }
	    -> sdt:::contention_end /args[1] == 0/ {
		lock = args[0];
		ns = timestamp - self->from[args[0]];
		mode = RW_WRITER;
		was_written = self->count[args[0]] & 1;
		readers = self->count[args[0]] >> 8;
	    }
	    never_in "rwsem_down_read_*", "__mutex_*", "__ww_mutex_*", "queued_*", "native_queued_*",
		"__pv_queued_*", "resilient_queued_*", "percpu_down_*", "__percpu_down_*",
		"__down_common*", "__rt_mutex_*", "rt_mutex_*";
	probe rw__downgrade(struct rw_semaphore *lock)
	    = fbt::downgrade_write:entry { lock = args[0]; };
	probe rw__release(struct rw_semaphore *lock, int mode)
	    = fbt::up_read:entry { lock = args[0]; mode = RW_READER; };
	probe rw__release(struct rw_semaphore *lock, int mode)
	    = fbt::up_write:entry { lock = args[0]; mode = RW_WRITER; };
	probe rw__upgrade() absent "no lock of Linux is upgraded; nearest: lockstat:::rw-acquire";
};
