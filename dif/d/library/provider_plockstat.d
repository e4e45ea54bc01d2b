/*
 * The probes of plockstat: mutexes and reader-writer locks of programs, by the functions of the GNU C
 * library 2.34 to 2.41. Names and arguments: the published Dynamic Tracing Guide, "plockstat Provider".
 * Layouts: struct_mutex.h of glibc's x86 (__lock, __count, __owner, __nusers, __kind: an int each) and
 * struct_rwlock.h (__cur_writer at 24). Programs are compiled with them, so they do not change.
 *
 * A thread blocks where futex() makes it wait for a word of the lock that it asked for last. Waiting for
 * a condition releases the mutex, and acquires it again.
 */
#pragma D depends_on module vmlinux
#pragma D depends_on library errno.d
#pragma D depends_on library plockstat.d

provider plockstat {
	probe mutex__acquire(uintptr_t mutex, int recursive, int spins)
	    = pid*:libc.so.6:pthread_mutex_lock:entry {
		self->mutex = arg0;
		self->recursive = (*(int *)copyin(arg0 + 16, sizeof (int)) & PLOCKSTAT_KIND_BITS) == PLOCKSTAT_RECURSIVE &&
		    *(int *)copyin(arg0 + 8, sizeof (int)) == PLOCKSTAT_TID;
	    }
	    -> pid*:libc.so.6:pthread_mutex_lock:return /(int)arg1 == 0 || (int)arg1 == EOWNERDEAD/ {
		mutex = self->mutex;
		recursive = self->recursive;
		spins = 0;
	    };
	probe mutex__acquire(uintptr_t mutex, int recursive, int spins)
	    = pid*:libc.so.6:pthread_mutex_timedlock:entry {
		self->mutex = arg0;
		self->recursive = (*(int *)copyin(arg0 + 16, sizeof (int)) & PLOCKSTAT_KIND_BITS) == PLOCKSTAT_RECURSIVE &&
		    *(int *)copyin(arg0 + 8, sizeof (int)) == PLOCKSTAT_TID;
	    }
	    -> pid*:libc.so.6:pthread_mutex_timedlock:return /(int)arg1 == 0 || (int)arg1 == EOWNERDEAD/ {
		mutex = self->mutex;
		recursive = self->recursive;
		spins = 0;
	    };
	probe mutex__acquire(uintptr_t mutex, int recursive, int spins)
	    = pid*:libc.so.6:pthread_mutex_clocklock:entry {
		self->mutex = arg0;
		self->recursive = (*(int *)copyin(arg0 + 16, sizeof (int)) & PLOCKSTAT_KIND_BITS) == PLOCKSTAT_RECURSIVE &&
		    *(int *)copyin(arg0 + 8, sizeof (int)) == PLOCKSTAT_TID;
	    }
	    -> pid*:libc.so.6:pthread_mutex_clocklock:return /(int)arg1 == 0 || (int)arg1 == EOWNERDEAD/ {
		mutex = self->mutex;
		recursive = self->recursive;
		spins = 0;
	    };
	probe mutex__acquire(uintptr_t mutex, int recursive, int spins)
	    = pid*:libc.so.6:pthread_mutex_trylock:entry {
		self->mutex = arg0;
		self->recursive = (*(int *)copyin(arg0 + 16, sizeof (int)) & PLOCKSTAT_KIND_BITS) == PLOCKSTAT_RECURSIVE &&
		    *(int *)copyin(arg0 + 8, sizeof (int)) == PLOCKSTAT_TID;
	    }
	    -> pid*:libc.so.6:pthread_mutex_trylock:return /(int)arg1 == 0 || (int)arg1 == EOWNERDEAD/ {
		mutex = self->mutex;
		recursive = self->recursive;
		spins = 0;
	    };
	probe mutex__acquire(uintptr_t mutex, int recursive, int spins)
	    = pid*:libc.so.6:pthread_cond_wait:entry { self->mutex = arg1; }
	    -> pid*:libc.so.6:pthread_cond_wait:return {
		mutex = self->mutex;
		recursive = 0;
		spins = 0;
	    };
	probe mutex__acquire(uintptr_t mutex, int recursive, int spins)
	    = pid*:libc.so.6:pthread_cond_timedwait:entry { self->mutex = arg1; }
	    -> pid*:libc.so.6:pthread_cond_timedwait:return {
		mutex = self->mutex;
		recursive = 0;
		spins = 0;
	    };
	probe mutex__acquire(uintptr_t mutex, int recursive, int spins)
	    = pid*:libc.so.6:pthread_cond_clockwait:entry { self->mutex = arg1; }
	    -> pid*:libc.so.6:pthread_cond_clockwait:return {
		mutex = self->mutex;
		recursive = 0;
		spins = 0;
	    };
	probe mutex__release(uintptr_t mutex, int recursive)
	    = pid*:libc.so.6:pthread_mutex_unlock:entry {
		self->mutex = arg0;
		self->recursive = (*(int *)copyin(arg0 + 16, sizeof (int)) & PLOCKSTAT_KIND_BITS) ==
		    PLOCKSTAT_RECURSIVE && *(int *)copyin(arg0 + 4, sizeof (int)) > 1;
	    }
	    -> pid*:libc.so.6:pthread_mutex_unlock:return /(int)arg1 == 0/ {
		mutex = self->mutex;
		recursive = self->recursive;
	    };
	probe mutex__release(uintptr_t mutex, int recursive)
	    = pid*:libc.so.6:pthread_cond_wait:entry {
		mutex = arg1;
		recursive = 0;
	    };
	probe mutex__release(uintptr_t mutex, int recursive)
	    = pid*:libc.so.6:pthread_cond_timedwait:entry {
		mutex = arg1;
		recursive = 0;
	    };
	probe mutex__release(uintptr_t mutex, int recursive)
	    = pid*:libc.so.6:pthread_cond_clockwait:entry {
		mutex = arg1;
		recursive = 0;
	    };
	probe mutex__block(uintptr_t mutex)
	    = pid*:libc.so.6:pthread_mutex_lock:entry { self->mutex = arg0; }
	    -> fbt::futex_wait:entry /arg0 == self->mutex/ { mutex = self->mutex; };
	probe mutex__block(uintptr_t mutex)
	    = pid*:libc.so.6:pthread_mutex_lock:entry { self->mutex = arg0; }
	    -> fbt::futex_lock_pi:entry /arg0 == self->mutex/ { mutex = self->mutex; };
	probe mutex__block(uintptr_t mutex)
	    = pid*:libc.so.6:pthread_mutex_timedlock:entry { self->mutex = arg0; }
	    -> fbt::futex_wait:entry /arg0 == self->mutex/ { mutex = self->mutex; };
	probe mutex__block(uintptr_t mutex)
	    = pid*:libc.so.6:pthread_mutex_timedlock:entry { self->mutex = arg0; }
	    -> fbt::futex_lock_pi:entry /arg0 == self->mutex/ { mutex = self->mutex; };
	probe mutex__block(uintptr_t mutex)
	    = pid*:libc.so.6:pthread_mutex_clocklock:entry { self->mutex = arg0; }
	    -> fbt::futex_wait:entry /arg0 == self->mutex/ { mutex = self->mutex; };
	probe mutex__block(uintptr_t mutex)
	    = pid*:libc.so.6:pthread_mutex_clocklock:entry { self->mutex = arg0; }
	    -> fbt::futex_lock_pi:entry /arg0 == self->mutex/ { mutex = self->mutex; };
	probe mutex__block(uintptr_t mutex)
	    = pid*:libc.so.6:pthread_cond_wait:entry { self->mutex = arg1; }
	    -> fbt::futex_wait:entry /arg0 == self->mutex/ { mutex = self->mutex; };
	probe mutex__block(uintptr_t mutex)
	    = pid*:libc.so.6:pthread_cond_wait:entry { self->mutex = arg1; }
	    -> fbt::futex_lock_pi:entry /arg0 == self->mutex/ { mutex = self->mutex; };
	probe mutex__block(uintptr_t mutex)
	    = pid*:libc.so.6:pthread_cond_timedwait:entry { self->mutex = arg1; }
	    -> fbt::futex_wait:entry /arg0 == self->mutex/ { mutex = self->mutex; };
	probe mutex__block(uintptr_t mutex)
	    = pid*:libc.so.6:pthread_cond_timedwait:entry { self->mutex = arg1; }
	    -> fbt::futex_lock_pi:entry /arg0 == self->mutex/ { mutex = self->mutex; };
	probe mutex__block(uintptr_t mutex)
	    = pid*:libc.so.6:pthread_cond_clockwait:entry { self->mutex = arg1; }
	    -> fbt::futex_wait:entry /arg0 == self->mutex/ { mutex = self->mutex; };
	probe mutex__block(uintptr_t mutex)
	    = pid*:libc.so.6:pthread_cond_clockwait:entry { self->mutex = arg1; }
	    -> fbt::futex_lock_pi:entry /arg0 == self->mutex/ { mutex = self->mutex; };
	probe mutex__spin(uintptr_t mutex)
	    absent "the GNU C library spins inside of pthread_mutex_lock(), where nothing tells of it";
	probe mutex__error(uintptr_t mutex, int error)
	    = pid*:libc.so.6:pthread_mutex_lock:entry { self->mutex = arg0; }
	    -> pid*:libc.so.6:pthread_mutex_lock:return /error != 0 && error != EOWNERDEAD/ {
		mutex = self->mutex;
		error = arg1;
	    };
	probe mutex__error(uintptr_t mutex, int error)
	    = pid*:libc.so.6:pthread_mutex_timedlock:entry { self->mutex = arg0; }
	    -> pid*:libc.so.6:pthread_mutex_timedlock:return /error != 0 && error != EOWNERDEAD/ {
		mutex = self->mutex;
		error = arg1;
	    };
	probe mutex__error(uintptr_t mutex, int error)
	    = pid*:libc.so.6:pthread_mutex_clocklock:entry { self->mutex = arg0; }
	    -> pid*:libc.so.6:pthread_mutex_clocklock:return /error != 0 && error != EOWNERDEAD/ {
		mutex = self->mutex;
		error = arg1;
	    };
	probe mutex__error(uintptr_t mutex, int error)
	    = pid*:libc.so.6:pthread_mutex_trylock:entry { self->mutex = arg0; }
	    -> pid*:libc.so.6:pthread_mutex_trylock:return /error != 0 && error != EOWNERDEAD && error != EBUSY/ {
		mutex = self->mutex;
		error = arg1;
	    };
	probe mutex__error(uintptr_t mutex, int error)
	    = pid*:libc.so.6:pthread_mutex_unlock:entry { self->mutex = arg0; }
	    -> pid*:libc.so.6:pthread_mutex_unlock:return /error != 0/ {
		mutex = self->mutex;
		error = arg1;
	    };
	probe rw__acquire(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_rdlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_rdlock:return /(int)arg1 == 0/ {
		lock = self->lock;
		writer = 0;
	    };
	probe rw__error(uintptr_t lock, int error)
	    = pid*:libc.so.6:pthread_rwlock_rdlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_rdlock:return /error != 0/ {
		lock = self->lock;
		error = arg1;
	    };
	probe rw__block(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_rdlock:entry { self->lock = arg0; }
	    -> fbt::futex_wait:entry /arg0 - self->lock < PLOCKSTAT_RWLOCK_WORDS/ {
		lock = self->lock;
		writer = 0;
	    };
	probe rw__acquire(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_timedrdlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_timedrdlock:return /(int)arg1 == 0/ {
		lock = self->lock;
		writer = 0;
	    };
	probe rw__error(uintptr_t lock, int error)
	    = pid*:libc.so.6:pthread_rwlock_timedrdlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_timedrdlock:return /error != 0/ {
		lock = self->lock;
		error = arg1;
	    };
	probe rw__block(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_timedrdlock:entry { self->lock = arg0; }
	    -> fbt::futex_wait:entry /arg0 - self->lock < PLOCKSTAT_RWLOCK_WORDS/ {
		lock = self->lock;
		writer = 0;
	    };
	probe rw__acquire(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_clockrdlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_clockrdlock:return /(int)arg1 == 0/ {
		lock = self->lock;
		writer = 0;
	    };
	probe rw__error(uintptr_t lock, int error)
	    = pid*:libc.so.6:pthread_rwlock_clockrdlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_clockrdlock:return /error != 0/ {
		lock = self->lock;
		error = arg1;
	    };
	probe rw__block(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_clockrdlock:entry { self->lock = arg0; }
	    -> fbt::futex_wait:entry /arg0 - self->lock < PLOCKSTAT_RWLOCK_WORDS/ {
		lock = self->lock;
		writer = 0;
	    };
	probe rw__acquire(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_tryrdlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_tryrdlock:return /(int)arg1 == 0/ {
		lock = self->lock;
		writer = 0;
	    };
	probe rw__error(uintptr_t lock, int error)
	    = pid*:libc.so.6:pthread_rwlock_tryrdlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_tryrdlock:return /error != 0 && error != EBUSY/ {
		lock = self->lock;
		error = arg1;
	    };
	probe rw__acquire(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_wrlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_wrlock:return /(int)arg1 == 0/ {
		lock = self->lock;
		writer = 1;
	    };
	probe rw__error(uintptr_t lock, int error)
	    = pid*:libc.so.6:pthread_rwlock_wrlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_wrlock:return /error != 0/ {
		lock = self->lock;
		error = arg1;
	    };
	probe rw__block(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_wrlock:entry { self->lock = arg0; }
	    -> fbt::futex_wait:entry /arg0 - self->lock < PLOCKSTAT_RWLOCK_WORDS/ {
		lock = self->lock;
		writer = 1;
	    };
	probe rw__acquire(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_timedwrlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_timedwrlock:return /(int)arg1 == 0/ {
		lock = self->lock;
		writer = 1;
	    };
	probe rw__error(uintptr_t lock, int error)
	    = pid*:libc.so.6:pthread_rwlock_timedwrlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_timedwrlock:return /error != 0/ {
		lock = self->lock;
		error = arg1;
	    };
	probe rw__block(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_timedwrlock:entry { self->lock = arg0; }
	    -> fbt::futex_wait:entry /arg0 - self->lock < PLOCKSTAT_RWLOCK_WORDS/ {
		lock = self->lock;
		writer = 1;
	    };
	probe rw__acquire(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_clockwrlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_clockwrlock:return /(int)arg1 == 0/ {
		lock = self->lock;
		writer = 1;
	    };
	probe rw__error(uintptr_t lock, int error)
	    = pid*:libc.so.6:pthread_rwlock_clockwrlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_clockwrlock:return /error != 0/ {
		lock = self->lock;
		error = arg1;
	    };
	probe rw__block(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_clockwrlock:entry { self->lock = arg0; }
	    -> fbt::futex_wait:entry /arg0 - self->lock < PLOCKSTAT_RWLOCK_WORDS/ {
		lock = self->lock;
		writer = 1;
	    };
	probe rw__acquire(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_trywrlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_trywrlock:return /(int)arg1 == 0/ {
		lock = self->lock;
		writer = 1;
	    };
	probe rw__error(uintptr_t lock, int error)
	    = pid*:libc.so.6:pthread_rwlock_trywrlock:entry { self->lock = arg0; }
	    -> pid*:libc.so.6:pthread_rwlock_trywrlock:return /error != 0 && error != EBUSY/ {
		lock = self->lock;
		error = arg1;
	    };
	probe rw__release(uintptr_t lock, int writer)
	    = pid*:libc.so.6:pthread_rwlock_unlock:entry {
		self->lock = arg0;
		self->writer = *(int *)copyin(arg0 + 24, sizeof (int)) != 0;
	    }
	    -> pid*:libc.so.6:pthread_rwlock_unlock:return /(int)arg1 == 0/ {
		lock = self->lock;
		writer = self->writer;
	    };
};
