/* Processes and threads of Linux guests, by the kernel's own types. */
#pragma D depends_on library procfs.d
#pragma D depends_on module vmlinux

translator psinfo_t < struct task_struct *T > {
	pr_nlwp = T->signal->nr_threads;
	pr_pid = T->tgid;
	pr_ppid = T->real_parent->tgid;
	pr_pgid = T->signal->pids[2]->numbers[0].nr;
	pr_sid = T->signal->pids[3]->numbers[0].nr;
	pr_uid = T->real_cred->uid.val;
	pr_euid = T->real_cred->euid.val;
	pr_gid = T->real_cred->gid.val;
	pr_egid = T->real_cred->egid.val;
	pr_addr = (uintptr_t)T;
	pr_ttydev = 0;
	pr_start = T->start_time;
	pr_fname = stringof(T->comm);
	pr_psargs = T->mm == NULL ? stringof(T->comm) : copyinstr(T->mm->arg_start);
	pr_wstat = T->exit_code;
	pr_argv = T->mm == NULL ? 0 : T->mm->arg_start;
	pr_envp = T->mm == NULL ? 0 : T->mm->env_start;
	pr_dmodel = PR_MODEL_LP64;
	pr_taskid = 0;
	pr_projid = 0;
	pr_poolid = 0;
	pr_zoneid = 0;
};

translator lwpsinfo_t < struct task_struct *T > {
	pr_flag = (T->flags & 0x200000 ? PR_KTHREAD : 0) | (T->pid == 0 ? PR_IDLE : 0);
	pr_lwpid = T->pid;
	pr_addr = (uintptr_t)T;
	pr_wchan = 0;
	pr_stype = 0;
	pr_state = T->exit_state != 0 ? SZOMB : T->on_cpu ? SONPROC : T->__state == 0 ? SRUN :
	    T->__state & 0xc ? SSTOP : SSLEEP;
	pr_sname = T->exit_state != 0 ? 'Z' : T->on_cpu ? 'O' : T->__state == 0 ? 'R' :
	    T->__state & 0xc ? 'T' : 'S';
	pr_syscall = 0;
	pr_pri = T->prio;
	pr_clname = T->policy == 0 ? "NORMAL" : T->policy == 1 ? "FIFO" : T->policy == 2 ? "RR" :
	    T->policy == 3 ? "BATCH" : T->policy == 5 ? "IDLE" : "DEADLINE";
	pr_name = stringof(T->comm);
	pr_onpro = T->thread_info.cpu;
	pr_bindpro = -1;
	pr_bindpset = -1;
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (curthread);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (curthread);
