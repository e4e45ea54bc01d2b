/*
 * The current process by the built-in variables alone, where procfs_linux.d is left out: the
 * tracer, which runs. Members that only its kernel knows are 0.
 */
#pragma D depends_on library procfs.d

this timestruc_t *__no_time;
inline timestruc_t __no_timestruc = (this->__no_time = (timestruc_t *)alloca(sizeof (timestruc_t)),
    *this->__no_time);

translator lwpsinfo_t < id_t L > {
	pr_flag = 0;
	pr_lwpid = L;
	pr_addr = 0;
	pr_wchan = 0;
	pr_stype = 0;
	pr_state = SONPROC;
	pr_sname = 'O';
	pr_nice = 0;
	pr_syscall = 0;
	pr_oldpri = 0;
	pr_cpu = 0;
	pr_pri = 0;
	pr_pctcpu = 0;
	pr_start = __no_timestruc;
	pr_time = __no_timestruc;
	pr_clname = "";
	pr_name = execname;
	pr_onpro = cpu;
	pr_bindpro = -1;
	pr_bindpset = -1;
	pr_lgrp = 0;
};

translator psinfo_t < pid_t P > {
	pr_flag = 0;
	pr_nlwp = 1;
	pr_nzomb = 0;
	pr_pid = P;
	pr_ppid = ppid;
	pr_pgid = 0;
	pr_sid = 0;
	pr_uid = uid;
	pr_euid = uid;
	pr_gid = gid;
	pr_egid = gid;
	pr_addr = 0;
	pr_size = 0;
	pr_rssize = 0;
	pr_ttydev = PRNODEV;
	pr_pctcpu = 0;
	pr_pctmem = 0;
	pr_start = __no_timestruc;
	pr_ctime = __no_timestruc;
	pr_fname = execname;
	pr_psargs = execname;
	pr_wstat = 0;
	pr_argc = 0;
	pr_argv = 0;
	pr_envp = 0;
	pr_dmodel = PR_MODEL_LP64;
	pr_taskid = 0;
	pr_projid = 0;
	pr_poolid = 0;
	pr_zoneid = 0;
	pr_contract = 0;
	pr_lwp = xlate <lwpsinfo_t> ((id_t)tid);
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (pid);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (tid);
inline string execargs = curpsinfo->pr_psargs;
