/* Locks of the GNU C library and threads of Linux, as provider_plockstat.d needs them. */
#pragma D depends_on module vmlinux

/* PTHREAD_MUTEX_RECURSIVE_NP, and the bits of __kind that say it. */
inline int PLOCKSTAT_KIND_BITS = 3;
inline int PLOCKSTAT_RECURSIVE = 1;
/* The thread as it knows itself: its number in its own namespace, of up to four in each other. */
inline int PLOCKSTAT_LEVEL = curthread->thread_pid->level;
inline int PLOCKSTAT_TID = PLOCKSTAT_LEVEL == 0 ? curthread->thread_pid->numbers[0].nr :
    PLOCKSTAT_LEVEL == 1 ? curthread->thread_pid->numbers[1].nr :
    PLOCKSTAT_LEVEL == 2 ? curthread->thread_pid->numbers[2].nr :
    curthread->thread_pid->numbers[3].nr;
/* Bytes of a pthread_rwlock_t that futex() is called for. */
inline int PLOCKSTAT_RWLOCK_WORDS = 16;
