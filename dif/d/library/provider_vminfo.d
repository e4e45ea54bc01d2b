/*
 * The probes of vminfo: places where a statistic grows. Names and arguments: the published Dynamic Tracing
 * Guide. Where Linux counts the same thing itself, its own counter is the place; arg0 there is the
 * number that is added, arg1 the address of this CPU's counter, which still has the value before. A
 * statistic that Linux has nowhere says so, and what comes nearest.
 */
#pragma D depends_on module vmlinux

provider vminfo {
	probe anonfree(long increment, unsigned long address)
	    = counter:::vm_event_states[PGSTEAL_ANON] { increment = arg0; address = arg1; };
	probe anonpgin(long increment, unsigned long address)
	    = counter:::vm_event_states[PSWPIN] { increment = arg0; address = arg1; };
	probe anonpgout(long increment, unsigned long address)
	    = counter:::vm_event_states[PSWPOUT] { increment = arg0; address = arg1; };
	probe as_fault(long increment, unsigned long address)
	    = counter:::vm_event_states[PGFAULT] { increment = arg0; address = arg1; };
	probe cow_fault()
	    absent "Linux does not count copies; nearest: fbt::do_wp_page:entry, of pages that may not be written";
	probe dfree(long increment, unsigned long address)
	    = counter:::vm_event_states[PGSTEAL_KSWAPD] { increment = arg0; address = arg1; };
	probe dfree(long increment, unsigned long address)
	    = counter:::vm_event_states[PGSTEAL_DIRECT] { increment = arg0; address = arg1; };
	probe dfree(long increment, unsigned long address)
	    = counter:::vm_event_states[PGSTEAL_KHUGEPAGED] { increment = arg0; address = arg1; };
	probe execfree()
	    absent "Linux does not tell pages of programs from those of other files; nearest: vminfo:::fsfree";
	probe execpgin()
	    absent "Linux does not tell pages of programs from those of other files; nearest: vminfo:::pgpgin";
	probe execpgout()
	    absent "Linux does not tell pages of programs from those of other files; nearest: vminfo:::pgpgout";
	probe fsfree(long increment, unsigned long address)
	    = counter:::vm_event_states[PGSTEAL_FILE] { increment = arg0; address = arg1; };
	probe fspgin()
	    absent "Linux counts what comes from files with all else that is read; nearest: vminfo:::pgpgin";
	probe fspgout()
	    absent "Linux counts what goes to files with all else that is written; nearest: vminfo:::pgpgout";
	probe kernel_asflt()
	    absent "the kernel of Linux takes no faults that page its own memory in; nearest: vminfo:::as_fault";
	probe maj_fault(long increment, unsigned long address)
	    = counter:::vm_event_states[PGMAJFAULT] { increment = arg0; address = arg1; };
	probe pgfrec()
	    absent "Linux has no free pages that keep their contents; nearest: sdt:pagemap::mm_lru_activate";
	probe pgin(long increment, unsigned long address)
	    = counter:::vm_event_states[PGPGIN] { increment = 1; address = arg1; };
	probe pgout(long increment, unsigned long address)
	    = counter:::vm_event_states[PGPGOUT] { increment = 1; address = arg1; };
	probe pgpgin(long increment, unsigned long address)
	    = counter:::vm_event_states[PGPGIN] { increment = (arg0 + 7) / 8; address = arg1; };
	probe pgpgout(long increment, unsigned long address)
	    = counter:::vm_event_states[PGPGOUT] { increment = (arg0 + 7) / 8; address = arg1; };
	probe pgrec()
	    absent "Linux takes back no page that was to be freed; nearest: sdt:pagemap::mm_lru_activate";
	probe pgrrun(long increment, unsigned long address)
	    = counter:::vm_event_states[PAGEOUTRUN] { increment = arg0; address = arg1; };
	probe pgswapin(long increment, unsigned long address)
	    = counter:::vm_event_states[PSWPIN] { increment = arg0; address = arg1; };
	probe pgswapout(long increment, unsigned long address)
	    = counter:::vm_event_states[PSWPOUT] { increment = arg0; address = arg1; };
	probe prot_fault() absent "Linux does not count them; nearest: proc:::signal-send of SIGSEGV";
	probe rev() absent "the lists of Linux have no hand that goes round; nearest: vminfo:::pgrrun";
	probe scan(long increment, unsigned long address)
	    = counter:::vm_event_states[PGSCAN_KSWAPD] { increment = arg0; address = arg1; };
	probe scan(long increment, unsigned long address)
	    = counter:::vm_event_states[PGSCAN_DIRECT] { increment = arg0; address = arg1; };
	probe scan(long increment, unsigned long address)
	    = counter:::vm_event_states[PGSCAN_KHUGEPAGED] { increment = arg0; address = arg1; };
	probe softlock() absent "Linux has no such locks of pages; nearest: fbt::__mm_populate:entry";
	probe swapin() absent "Linux swaps pages, not processes; nearest: vminfo:::pgswapin";
	probe swapout() absent "Linux swaps pages, not processes; nearest: vminfo:::pgswapout";
	probe zfod(long increment)
	    = fbt::do_anonymous_page:entry { increment = 1; };
};
