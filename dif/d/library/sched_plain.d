/*
 * The current processor by the built-in variables alone, where sched_linux.d is left out. Members
 * that only its kernel knows are 0.
 */
#pragma D depends_on library sched.d

translator processor_info_t < int C > {
	pi_state = P_ONLINE;
	pi_processor_type = "";
	pi_fputypes = "";
	pi_clock = 0;
};

translator cpuinfo_t < int C > {
	cpu_id = C;
	cpu_pset = 0;
	cpu_chip = 0;
	cpu_lgrp = 0;
	cpu_info = xlate <processor_info_t> (C);
};

inline cpuinfo_t *curcpu = xlate <cpuinfo_t *> (cpu);
inline chipid_t chip = curcpu->cpu_chip;
