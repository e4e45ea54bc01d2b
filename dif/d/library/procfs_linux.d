/*
 * Processes and threads of Linux guests, by the kernel's own types. Of a member that stands here
 * twice the first counts that the kernel has the types for: __state is since 5.14, and the CPU has
 * been in thread_info since 5.16. Resident pages are in counters of their own since 6.2. The clock
 * comes after 8 bytes of tk_core, which is a struct tk_data since 6.13 and called otherwise since 6.17.
 */
#pragma D depends_on library procfs.d
#pragma D depends_on module vmlinux

/* Arguments lie one after the other, each with its NUL, for which a blank stands in what is
 * joined. As many as pr_psargs below has lines of it are joined to the first. */
inline int PRARGSZ = 80;
inline string __psargs_and_next[string joined, uintptr_t start, uintptr_t end] =
    strlen(joined) < PRARGSZ && start + strlen(joined) + 1 < end ?
    strjoin(joined, strjoin(" ", copyinstr(start + strlen(joined) + 1))) : joined;

this timestruc_t *__time;
this long __call;
inline timestruc_t __timestruc[uint64_t ns] = (this->__time =
    (timestruc_t *)alloca(sizeof (timestruc_t)), this->__time->tv_sec = ns / 1000000000,
    this->__time->tv_nsec = ns % 1000000000, *this->__time);

/* A page in KiB, and the share of all of them that 0x8000 is the whole of. */
inline size_t __kibibytes[int64_t pages] = (pages < 0 ? 0 : pages) * 4;
inline ushort_t __share_of_memory[int64_t pages] =
    (pages < 0 ? 0 : pages) * 0x8000 / *(long *)&`_totalram_pages;
/* With what this CPU has not yet added; what others have not is missing. */
inline int64_t __counted[struct percpu_counter *C] =
    C->count + *(int *)((uintptr_t)C->counters + `__per_cpu_offset[cpu]);

/* A new program's stack begins with argc, argv[], envp[], in words of the program's own size. */
inline int __is_ilp32[struct task_struct *T] = (T->thread_info.flags & 1 << 29) != 0;
inline uintptr_t __argv[struct task_struct *T] = T->mm == NULL ? 0 : T->mm->start_stack +
    (__is_ilp32[T] ? 4 : 8);
inline int __argc[struct task_struct *T] = T->mm == NULL || T->mm != curthread->mm ? 0 :
    *(int *)copyin(T->mm->start_stack, sizeof (int));

/* A thread's registers of user mode are saved at its stack's top, less what is kept free there of a
 * kernel that can do FRED: what it has asked of the kernel, or less than 0. */
inline short __system_call[struct task_struct *T, uint64_t top] = T->mm == NULL ? 0 :
    (this->__call = ((struct pt_regs *)((uintptr_t)T->stack + top) - 1)->orig_ax,
    this->__call < 0 ? 0 : this->__call);

inline int __thread_flags[struct task_struct *T, uint64_t state] =
    (T->flags & 0x200000 ? PR_KTHREAD | PR_ISSYS : 0) | (T->pid == 0 ? PR_IDLE : 0) |
    (T->ptrace != 0 ? PR_PTRACE : 0) | (state & 0xc ? PR_STOPPED : state != 0 ? PR_ASLEEP : 0);

/* A thread that leaves its CPU is still on it, but no longer in its queue if it is to sleep, or (since
 * 6.12) there by courtesy. */
inline char __thread_state[struct task_struct *T, uint64_t state, int delayed] =
    T->exit_state != 0 ? SZOMB : T->on_cpu != 0 && T->on_rq != 0 && delayed == 0 ?
    (probename == "off-cpu" && T == curthread ? SRUN : SONPROC) :
    state == 0 ? SRUN : state & 0xc ? SSTOP : SSLEEP;
inline char __state_name[char state] = state == SZOMB ? 'Z' : state == SONPROC ? 'O' :
    state == SRUN ? 'R' : state == SSTOP ? 'T' : 'S';

translator lwpsinfo_t < struct task_struct *T > {
	pr_flag = __thread_flags[T, T->__state];
	pr_flag = __thread_flags[T, T->state];
	pr_lwpid = T->pid;
	pr_addr = (uintptr_t)T;
	pr_wchan = 0;
	pr_stype = 0;
	pr_state = __thread_state[T, T->__state, T->se.sched_delayed];
	pr_state = __thread_state[T, T->__state, 0];
	pr_state = __thread_state[T, T->state, 0];
	pr_sname = __state_name[__thread_state[T, T->__state, T->se.sched_delayed]];
	pr_sname = __state_name[__thread_state[T, T->__state, 0]];
	pr_sname = __state_name[__thread_state[T, T->state, 0]];
	pr_nice = T->static_prio - 120;
	pr_syscall = __system_call[T, (uintptr_t)&`__end_init_stack - (uintptr_t)&`__start_init_stack -
	    ((uintptr_t)&`asm_fred_entrypoint_user != 0 ? 16 : 0)];
	pr_syscall = __system_call[T, (uintptr_t)&`__end_init_stack - (uintptr_t)&`__start_init_stack];
	pr_syscall = __system_call[T, (uintptr_t)&`__end_init_task - (uintptr_t)&`__start_init_task -
	    ((uintptr_t)&`asm_fred_entrypoint_user != 0 ? 16 : 0)];
	pr_syscall = __system_call[T, (uintptr_t)&`__end_init_task - (uintptr_t)&`__start_init_task];
	pr_oldpri = 0;
	pr_cpu = 0;
	pr_pri = T->prio;
	pr_pctcpu = T->se.avg.util_avg * 32;
	pr_start = __timestruc[T->start_time +
	    ((struct tk_data *)&`timekeeper_data)->timekeeper.offs_real];
	pr_start = __timestruc[T->start_time + ((struct tk_data *)&`tk_core)->timekeeper.offs_real];
	pr_start = __timestruc[T->start_time +
	    ((struct timekeeper *)((uintptr_t)&`tk_core + 8))->offs_real];
	pr_time = __timestruc[T->se.sum_exec_runtime];
	pr_clname = T->policy == 0 ? "NORMAL" : T->policy == 1 ? "FIFO" : T->policy == 2 ? "RR" :
	    T->policy == 3 ? "BATCH" : T->policy == 5 ? "IDLE" : "DEADLINE";
	pr_name = stringof(T->comm);
	pr_onpro = T->thread_info.cpu;
	pr_onpro = T->cpu;
	pr_bindpro = -1;
	pr_bindpset = -1;
	pr_lgrp = 0;
};

/* Of another process than the current one, whose memory is not at hand, pr_psargs is the name. */
translator psinfo_t < struct task_struct *T > {
	pr_flag = (T->flags & 0x200000 ? PR_KTHREAD | PR_ISSYS : 0) | (T->ptrace != 0 ? PR_PTRACE : 0);
	pr_nlwp = T->signal->nr_threads;
	pr_nzomb = 0;
	pr_pid = T->tgid;
	pr_ppid = T->real_parent->tgid;
	pr_pgid = T->signal->pids[2]->numbers[0].nr;
	pr_sid = T->signal->pids[3]->numbers[0].nr;
	pr_uid = T->real_cred->uid.val;
	pr_euid = T->real_cred->euid.val;
	pr_gid = T->real_cred->gid.val;
	pr_egid = T->real_cred->egid.val;
	pr_addr = (uintptr_t)T;
	pr_size = T->mm == NULL ? 0 : __kibibytes[T->mm->total_vm];
	pr_rssize = T->mm == NULL ? 0 : __kibibytes[__counted[&T->mm->rss_stat[0]] +
	    __counted[&T->mm->rss_stat[1]] + __counted[&T->mm->rss_stat[3]]];
	pr_rssize = T->mm == NULL ? 0 : __kibibytes[T->mm->rss_stat.count[0].counter +
	    T->mm->rss_stat.count[1].counter + T->mm->rss_stat.count[3].counter];
	pr_ttydev = T->signal->tty == NULL ? PRNODEV : (T->signal->tty->driver->major << 20) +
	    T->signal->tty->driver->minor_start + T->signal->tty->index;
	pr_pctcpu = T->se.avg.util_avg * 32;
	pr_pctmem = T->mm == NULL ? 0 : __share_of_memory[__counted[&T->mm->rss_stat[0]] +
	    __counted[&T->mm->rss_stat[1]] + __counted[&T->mm->rss_stat[3]]];
	pr_pctmem = T->mm == NULL ? 0 : __share_of_memory[T->mm->rss_stat.count[0].counter +
	    T->mm->rss_stat.count[1].counter + T->mm->rss_stat.count[3].counter];
	pr_start = __timestruc[T->group_leader->start_time +
	    ((struct tk_data *)&`timekeeper_data)->timekeeper.offs_real];
	pr_start = __timestruc[T->group_leader->start_time +
	    ((struct tk_data *)&`tk_core)->timekeeper.offs_real];
	pr_start = __timestruc[T->group_leader->start_time +
	    ((struct timekeeper *)((uintptr_t)&`tk_core + 8))->offs_real];
	pr_ctime = __timestruc[T->signal->cutime + T->signal->cstime];
	pr_fname = stringof(T->comm);
	pr_psargs = T->mm == NULL || T->mm != curthread->mm ? stringof(T->comm) :
	    (this->__psargs = copyinstr(T->mm->arg_start),
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    this->__psargs = __psargs_and_next[this->__psargs, T->mm->arg_start, T->mm->arg_end],
	    substr(this->__psargs, 0, PRARGSZ - 1));
	pr_wstat = T->exit_code;
	pr_argc = __argc[T];
	pr_argv = __argv[T];
	pr_envp = T->mm == NULL || T->mm != curthread->mm ? 0 :
	    __argv[T] + (__argc[T] + 1) * (__is_ilp32[T] ? 4 : 8);
	pr_dmodel = __is_ilp32[T] ? PR_MODEL_ILP32 : PR_MODEL_LP64;
	pr_taskid = 0;
	pr_projid = 0;
	pr_poolid = 0;
	pr_zoneid = 0;
	pr_contract = 0;
	pr_lwp = xlate <lwpsinfo_t> (T);
};

/* Members share their places: si_pid and si_uid are of signals that were sent and of SIGCHLD,
 * si_status of SIGCHLD, si_addr of faults, si_band of SIGPOLL. */
translator k_siginfo_t < struct kernel_siginfo *S > {
	si_signo = S->si_signo;
	si_errno = S->si_errno;
	si_code = S->si_code;
	si_pid = S->_sifields._kill._pid;
	si_uid = S->_sifields._kill._uid;
	si_addr = (uintptr_t)S->_sifields._sigfault._addr;
	si_status = S->_sifields._sigchld._status;
	si_band = S->_sifields._sigpoll._band;
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (curthread);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (curthread);
inline string execargs = curpsinfo->pr_psargs;
