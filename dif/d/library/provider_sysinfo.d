/*
 * The probes of sysinfo: places where a statistic grows. Names and arguments: the published Dynamic Tracing
 * Guide. Where Linux counts the same thing itself, its own counter is the place; arg0 there is the
 * number that is added, arg1 the address of this CPU's counter, which still has the value before. A
 * statistic that Linux has nowhere says so, and what comes nearest.
 */
#pragma D depends_on module vmlinux

provider sysinfo {
	probe bawrite() absent "Linux does not tell who waits for a block; nearest: sysinfo:::bwrite";
	probe bread(long increment, unsigned long address)
	    = counter:::vm_event_states[PGPGIN] { increment = 1; address = arg1; };
	probe bwrite(long increment, unsigned long address)
	    = counter:::vm_event_states[PGPGOUT] { increment = 1; address = arg1; };
	probe cpu_ticks_idle(long increment, struct task_struct *task, int user)
	    = fbt::update_process_times:entry /user == 0 && task->pid == 0/ {
		increment = 1;
		task = curthread;
		user = arg0;
	    };
	probe cpu_ticks_kernel(long increment, struct task_struct *task, int user)
	    = fbt::update_process_times:entry /user == 0 && task->pid != 0/ {
		increment = 1;
		task = curthread;
		user = arg0;
	    };
	probe cpu_ticks_user(long increment, struct task_struct *task, int user)
	    = fbt::update_process_times:entry /user != 0/ {
		increment = 1;
		task = curthread;
		user = arg0;
	    };
	probe cpu_ticks_wait()
	    absent "Linux finds at no tick that a CPU waits; nearest: sysinfo:::cpu_ticks_idle";
	probe idlethread(long increment, struct task_struct *next)
	    = sdt:::sched_switch /next->pid == 0/ { increment = 1; next = args[2]; };
	probe intr(long increment)
	    = fbt::irq_enter_rcu:entry { increment = 1; };
	probe intrblk() absent "Linux has no interrupts that block; nearest: sched:::sleep";
	probe inv_swtch(long increment, int preempt, int state)
	    = sdt:::sched_switch /preempt != 0/ {
		increment = 1;
		preempt = args[0] & 1;
		state = args[3];
		state = curthread->__state;
		state = curthread->state;
	    };
	probe inv_swtch(long increment, int preempt, int state)
	    = sdt:::sched_switch /preempt == 0 && state == 0/ {
		increment = 1;
		preempt = args[0] & 1;
		state = args[3];
		state = curthread->__state;
		state = curthread->state;
	    };
	probe lread()
	    absent "Linux does not count what it finds in its buffers; nearest: fbt::__bread_gfp:entry";
	probe lwrite()
	    absent "Linux does not count what it writes to its buffers; nearest: fbt::mark_buffer_dirty:entry";
	probe modload(long increment)
	    = sdt:::module_load { increment = 1; };
	probe modunload(long increment)
	    = sdt:::module_free { increment = 1; };
	probe msg(long increment, long outcome)
	    = fbt::do_msgsnd:return /outcome > -1/ { increment = 1; outcome = arg1; };
	probe msg(long increment, long outcome)
	    = fbt::do_msgrcv:return /outcome > -1/ { increment = 1; outcome = arg1; };
	probe mutex_adenters(long increment)
	    = fbt::__mutex_lock:entry { increment = 1; };
	probe namei(long increment)
	    = fbt::filename_lookup:entry { increment = 1; };
	probe namei(long increment)
	    = fbt::__filename_parentat:entry | fbt::filename_parentat:entry { increment = 1; };
	probe namei(long increment)
	    = fbt::do_filp_open:entry | fbt::do_file_open:entry { increment = 1; };
	probe namei(long increment)
	    = fbt::do_file_open_root:entry { increment = 1; };
	probe nthreads(long increment)
	    = fbt::wake_up_new_task:entry { increment = 1; };
	probe phread() absent "Linux has no raw devices; nearest: io:::start";
	probe phwrite() absent "Linux has no raw devices; nearest: io:::start";
	probe procovf(long increment, int error)
	    = fbt::kernel_clone:return /error == 11/ { increment = 1; error = -arg1; };
	probe pswitch(long increment)
	    = sdt:::sched_switch { increment = 1; };
	probe readch(long bytes)
	    = fbt::vfs_read:return /bytes > 0/ { bytes = arg1; };
	probe readch(long bytes)
	    = fbt::vfs_readv:return /bytes > 0/ { bytes = arg1; };
	probe rw_rdfails(long increment)
	    = fbt::rwsem_down_read_slowpath:entry { increment = 1; };
	probe rw_wrfails(long increment)
	    = fbt::rwsem_down_write_slowpath:entry { increment = 1; };
	probe sema(long increment)
	    = fbt::do_semtimedop:entry { increment = 1; };
	probe sysexec(long increment)
	    = fbt::do_execveat_common:entry { increment = 1; };
	probe sysfork(long increment, struct kernel_clone_args *clone)
	    = fbt::kernel_clone:entry
	    /(clone->flags & 0x14000) == 0 && (curthread->flags & 0x200000) == 0/ {
		increment = 1;
		clone = args[0];
	    };
	probe sysread(long increment)
	    = fbt::ksys_read:entry { increment = 1; };
	probe sysread(long increment)
	    = fbt::__x64_sys_pread64:entry { increment = 1; };
	probe sysread(long increment)
	    = fbt::__x64_sys_readv:entry { increment = 1; };
	probe sysread(long increment)
	    = fbt::__x64_sys_preadv:entry { increment = 1; };
	probe sysread(long increment)
	    = fbt::__x64_sys_preadv2:entry { increment = 1; };
	probe sysvfork(long increment, struct kernel_clone_args *clone)
	    = fbt::kernel_clone:entry
	    /(clone->flags & 0x14000) == 0x4000 && (curthread->flags & 0x200000) == 0/ {
		increment = 1;
		clone = args[0];
	    };
	probe syswrite(long increment)
	    = fbt::ksys_write:entry { increment = 1; };
	probe syswrite(long increment)
	    = fbt::__x64_sys_pwrite64:entry { increment = 1; };
	probe syswrite(long increment)
	    = fbt::__x64_sys_writev:entry { increment = 1; };
	probe syswrite(long increment)
	    = fbt::__x64_sys_pwritev:entry { increment = 1; };
	probe syswrite(long increment)
	    = fbt::__x64_sys_pwritev2:entry { increment = 1; };
	probe trap() absent "no probe can stand where Linux takes traps; nearest: vminfo:::as_fault";
	probe ufsdirblk() absent "Linux has no UFS; nearest: fbt::iterate_dir:entry";
	probe ufsiget() absent "Linux has no UFS; nearest: fbt::iget_locked:entry";
	probe ufsinopage() absent "Linux has no UFS; nearest: fbt::evict:entry";
	probe ufsipage() absent "Linux has no UFS; nearest: fbt::evict:entry";
	probe wait_ticks_io()
	    absent "Linux finds at no tick that a CPU waits; nearest: sysinfo:::cpu_ticks_idle";
	probe writech(long bytes)
	    = fbt::vfs_write:return /bytes > 0/ { bytes = arg1; };
	probe writech(long bytes)
	    = fbt::vfs_writev:return /bytes > 0/ { bytes = arg1; };
	probe xcalls(long increment)
	    = fbt::native_send_call_func_single_ipi:entry { increment = 1; };
	probe xcalls(long increment)
	    = fbt::native_send_call_func_ipi:entry { increment = 1; };
};
