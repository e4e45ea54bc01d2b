/*
 * Variables of illumos's kernel that scripts read, where Linux knows the same. An inline
 * __genunix_NAME stands for `NAME and genunix`NAME where the guest's kernel has no such variable.
 */
#pragma D depends_on module vmlinux

/* Loads have 16 bits of fraction there and 11 here. */
inline uint64_t __genunix_hp_avenrun[int i] = ((unsigned long *)&`avenrun)[i] * 32;
inline struct new_utsname __genunix_utsname = ((struct uts_namespace *)&`init_uts_ns)->name;
inline int __genunix_ncpus_online = *(int *)&`__num_online_cpus;
inline int __genunix_max_cpuid = *(int *)&`nr_cpu_ids - 1;
/* Pages. What each CPU has not yet added is missing. */
inline pgcnt_t __genunix_freemem = ((long *)&`vm_zone_stat)[NR_FREE_PAGES];
