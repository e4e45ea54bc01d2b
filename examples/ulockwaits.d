#!/usr/bin/env -S ringside -s
/*
 * ulockwaits.d - waits of a process's threads for mutexes, by mutex and stack.
 *
 * USAGE: ringside --attach TARGET -s ulockwaits.d -p PID
 *
 * Nanoseconds that a thread slept in pthread_mutex_lock of the C library, because another thread
 * had the mutex. Each sleep counts. Locks without a sleep do not count.
 */

#pragma D option quiet

inline int FUTEX_WAIT = 0;
inline int FUTEX_LOCK_PI = 6;
inline int FUTEX_CMD_MASK = 0x7f;

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

pid$target:libc.so.6:pthread_mutex_lock:entry
{
	self->mutex = arg0;
}

/* The kernel's lock is the first word of the mutex. */
syscall::futex:entry
/self->mutex && arg0 == self->mutex && ((arg1 & FUTEX_CMD_MASK) == FUTEX_WAIT ||
    (arg1 & FUTEX_CMD_MASK) == FUTEX_LOCK_PI)/
{
	self->since = timestamp;
}

syscall::futex:return
/self->since/
{
	@[uaddr(self->mutex), ustack(8)] = quantize(timestamp - self->since);
	self->since = 0;
}
