/*
 * The probes of lsm: the questions that the kernel asks its security modules (AppArmor, SELinux,
 * Landlock...), as FreeBSD's provider mac has them. Each hook is a function security_* of Linux. Its
 * verdict is 0, or above 0, where it allows; else it is the number of an error, which args[0] has as
 * the kernel does: below 0. The hook's own arguments come behind, up to eight of them. Where a hook ends
 * in a static call, as most do since 6.12, no probe can stand at its return: `check`, of every question,
 * has the thread that asks in the place of the verdict.
 *
 * SELinux has functions of such names that are no hooks.
 */
#pragma D depends_on module vmlinux

provider lsm {
	probe check(struct task_struct *task, ...)
	    = fbt::security_*:entry { task = curthread; };
	probe check__ok(int verdict, ...)
	    = fbt::security_*:entry { }
	    -> fbt::security_*:return /verdict >= 0/ { verdict = args[1]; };
	probe check__err(int verdict, ...)
	    = fbt::security_*:entry { }
	    -> fbt::security_*:return /verdict < 0/ { verdict = args[1]; };
}
    never_in "security_sid_*", "security_context_*", "security_compute_*", "security_load_*",
	"security_read_*", "security_get_*", "security_set_*", "security_change_*",
	"security_member_*", "security_transition_*", "security_validate_*",
	"security_mls_*", "security_port_*", "security_netif_*", "security_node_*",
	"security_fs_use*", "security_genfs_*", "security_ib_endport_sid*", "security_ib_pkey_sid*",
	"security_net_peersid_*",
	"security_netlbl_*", "security_policycap_*", "security_bounded_*", "security_dump_*",
	"security_module_*", "security_add_*", "security_init*", "security_is_*",
	"security_boot*", "security_mounted*", "security_setup*";
