/*
 * The processor that a probe fires on. The translators for Linux are in sched_linux.d; without a
 * kernel's types sched_plain.d says what the built-in variables know. Guests here have one set, and
 * no groups.
 */
typedef int processorid_t;
typedef int psetid_t;
typedef int chipid_t;
typedef int lgrp_id_t;

/* Of pi_state; Linux has P_ONLINE and P_OFFLINE. */
inline int P_OFFLINE = 1;
inline int P_ONLINE = 2;
inline int P_STATUS = 3;
inline int P_FAULTED = 4;
inline int P_POWEROFF = 5;
inline int P_NOINTR = 6;
inline int P_SPARE = 7;

/* pi_clock is in MHz. */
typedef struct processor_info {
	int pi_state;
	string pi_processor_type;
	string pi_fputypes;
	int pi_clock;
} processor_info_t;

typedef struct cpuinfo {
	processorid_t cpu_id;
	psetid_t cpu_pset;
	chipid_t cpu_chip;
	lgrp_id_t cpu_lgrp;
	processor_info_t cpu_info;
} cpuinfo_t;

inline psetid_t pset = 0;
inline lgrp_id_t lgrp = 0;
