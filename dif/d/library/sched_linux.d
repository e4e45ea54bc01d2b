/*
 * Processors of Linux guests, by the kernel's own types. Of a member that stands here twice the first
 * counts that the kernel has the types for: a package's number lies apart since 6.7.
 */
#pragma D depends_on library sched.d
#pragma D depends_on module vmlinux

inline struct cpuinfo_x86 *__cpu_data[int C] =
    (struct cpuinfo_x86 *)((uintptr_t)&`cpu_info + `__per_cpu_offset[C]);
inline int __is_online[int C] = (*((uint64_t *)&`__cpu_online_mask + C / 64) >> C % 64 & 1) != 0;

/* All have what the architecture has. */
translator processor_info_t < struct rq *R > {
	pi_state = __is_online[R->cpu] ? P_ONLINE : P_OFFLINE;
	pi_processor_type = "x86_64";
	pi_fputypes = "sse2";
	pi_clock = *(unsigned int *)&`cpu_khz / 1000;
};

translator cpuinfo_t < struct rq *R > {
	cpu_id = R->cpu;
	cpu_pset = 0;
	cpu_chip = __cpu_data[R->cpu]->topo.pkg_id;
	cpu_chip = __cpu_data[R->cpu]->phys_proc_id;
	cpu_lgrp = 0;
	cpu_info = xlate <processor_info_t> (R);
};

inline cpuinfo_t *curcpu =
    xlate <cpuinfo_t *> ((struct rq *)((uintptr_t)&`runqueues + `__per_cpu_offset[cpu]));
inline chipid_t chip = curcpu->cpu_chip;
