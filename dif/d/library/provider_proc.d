/*
 * The probes of proc: processes, threads, their signals and faults. Names and arguments: the published
 * Dynamic Tracing Guide. Places: Linux 5.10 to 6.12. docs/providers-in-d.md explains the syntax. If
 * several probes stand at one place, they fire in this order: a process's first thread is created,
 * then the process.
 */
#pragma D depends_on library signal.d
#pragma D depends_on module vmlinux
#pragma D depends_on library procfs.d

provider proc {
	probe lwp__create(struct task_struct *task)
	    : (lwpsinfo_t *task, psinfo_t *task)
	    = fbt::wake_up_new_task:entry { task = args[0]; };
	probe create(struct task_struct *task)
	    : (psinfo_t *task)
	    = fbt::wake_up_new_task:entry /task->pid == task->tgid/ { task = args[0]; };
	probe start()
	    = fbt::schedule_tail:return /curthread->pid == curthread->tgid/;
	probe lwp__start()
	    = fbt::schedule_tail:return;
	probe lwp__exit()
	    = fbt::taskstats_exit:entry;
	probe exit(int reason, int group_dead)
	    : (int reason)
	    = fbt::taskstats_exit:entry /group_dead != 0/ {
		reason = (curthread->exit_code & 0x7f) == 0 ? CLD_EXITED :
		    (curthread->exit_code & 0x80) != 0 ? CLD_DUMPED : CLD_KILLED;
		group_dead = arg1;
	    };
	probe exec(struct filename *filename, char *path)
	    : (char *path)
	    = fbt::do_execveat_common:entry /path != 0/ { filename = args[1]; path = filename->name; };
	probe exec(struct filename *filename, char *path)
	    : (char *path)
	    = fbt::kernel_execve:entry { filename = 0; path = args[0]; };
	probe exec__failure(int error)
	    : (int error)
	    = fbt::do_execveat_common:return /error > 0/ { error = -arg1; };
	probe exec__failure(int error)
	    : (int error)
	    = fbt::kernel_execve:return /error > 0/ { error = -arg1; };
	probe exec__success(int error)
	    = fbt::do_execveat_common:return /error == 0/ { error = -arg1; };
	probe exec__success(int error)
	    = fbt::kernel_execve:return /error == 0/ { error = -arg1; };
	probe signal__send(struct task_struct *task, int signal)
	    : (lwpsinfo_t *task, psinfo_t *task, int signal)
	    = fbt::complete_signal:entry { task = args[1]; signal = arg0; };
	probe signal__clear(int signal)
	    : (int signal)
	    = fbt::do_sigtimedwait:return /signal > 0/ { signal = arg1; };
	probe signal__discard(struct task_struct *task, int signal, int outcome)
	    : (lwpsinfo_t *task, psinfo_t *task, int signal)
	    = sdt:::signal_generate /outcome == 1/ {
		task = args[2];
		signal = args[0];
		outcome = args[4];
	    };
	probe signal__handle(int signal, struct kernel_siginfo *info, struct k_sigaction *action,
		unsigned long handler)
	    : (int signal, k_siginfo_t *info, unsigned long handler)
	    = sdt:::signal_deliver /handler > 1/ {
		signal = args[0];
		info = args[1];
		action = args[2];
		handler = action->sa.sa_handler;
	    };
	probe fault(int code, struct kernel_siginfo *info)
	    : (int code, k_siginfo_t *info)
	    = fbt::force_sig_info_to_task:entry /info->si_signo == 4/ { code = FLTILL; info = args[0]; };
	probe fault(int code, struct kernel_siginfo *info)
	    : (int code, k_siginfo_t *info)
	    = fbt::force_sig_info_to_task:entry /info->si_signo == 5 && info->si_code != 2/ {
		code = FLTBPT;
		info = args[0];
	    };
	probe fault(int code, struct kernel_siginfo *info)
	    : (int code, k_siginfo_t *info)
	    = fbt::force_sig_info_to_task:entry /info->si_signo == 5 && info->si_code == 2/ {
		code = FLTTRACE;
		info = args[0];
	    };
	probe fault(int code, struct kernel_siginfo *info)
	    : (int code, k_siginfo_t *info)
	    = fbt::force_sig_info_to_task:entry /info->si_signo == 7/ { code = FLTACCESS; info = args[0]; };
	probe fault(int code, struct kernel_siginfo *info)
	    : (int code, k_siginfo_t *info)
	    = fbt::force_sig_info_to_task:entry /info->si_signo == 11 && info->si_code > 1/ {
		code = FLTACCESS;
		info = args[0];
	    };
	probe fault(int code, struct kernel_siginfo *info)
	    : (int code, k_siginfo_t *info)
	    = fbt::force_sig_info_to_task:entry /info->si_signo == 11 && info->si_code == 1/ {
		code = FLTBOUNDS;
		info = args[0];
	    };
	probe fault(int code, struct kernel_siginfo *info)
	    : (int code, k_siginfo_t *info)
	    = fbt::force_sig_info_to_task:entry /info->si_signo == 8 && info->si_code == 1/ {
		code = FLTIZDIV;
		info = args[0];
	    };
	probe fault(int code, struct kernel_siginfo *info)
	    : (int code, k_siginfo_t *info)
	    = fbt::force_sig_info_to_task:entry /info->si_signo == 8 && info->si_code == 2/ {
		code = FLTIOVF;
		info = args[0];
	    };
	probe fault(int code, struct kernel_siginfo *info)
	    : (int code, k_siginfo_t *info)
	    = fbt::force_sig_info_to_task:entry /info->si_signo == 8 && info->si_code > 2/ {
		code = FLTFPE;
		info = args[0];
	    };
};
