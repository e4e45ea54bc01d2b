/*
 * A process and a thread as D sees them, whatever the guest's kernel calls them. The translators
 * for Linux are in procfs_linux.d; without a kernel's types procfs_plain.d says what the built-in
 * variables know.
 */
inline char SSLEEP = 1;
inline char SRUN = 2;
inline char SZOMB = 3;
inline char SSTOP = 4;
inline char SIDL = 5;
inline char SONPROC = 6;
inline char SWAIT = 7;

inline int PR_STOPPED = 0x1;
inline int PR_IDLE = 0x10000000;
inline int PR_KTHREAD = 0x200000;
inline char PR_MODEL_ILP32 = 1;
inline char PR_MODEL_LP64 = 2;

typedef struct psinfo {
	int pr_nlwp;
	pid_t pr_pid;
	pid_t pr_ppid;
	pid_t pr_pgid;
	pid_t pr_sid;
	uid_t pr_uid;
	uid_t pr_euid;
	gid_t pr_gid;
	gid_t pr_egid;
	uintptr_t pr_addr;
	uint64_t pr_ttydev;
	uint64_t pr_start;
	string pr_fname;
	string pr_psargs;
	int pr_wstat;
	uintptr_t pr_argv;
	uintptr_t pr_envp;
	char pr_dmodel;
	int pr_taskid;
	int pr_projid;
	int pr_poolid;
	int pr_zoneid;
} psinfo_t;

typedef struct lwpsinfo {
	int pr_flag;
	id_t pr_lwpid;
	uintptr_t pr_addr;
	uintptr_t pr_wchan;
	char pr_stype;
	char pr_state;
	char pr_sname;
	short pr_syscall;
	int pr_pri;
	string pr_clname;
	string pr_name;
	int pr_onpro;
	int pr_bindpro;
	int pr_bindpset;
} lwpsinfo_t;
