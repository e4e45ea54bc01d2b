/* NAME every member of curpsinfo and curlwpsinfo can be asked for without a guest
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d %d\n", curpsinfo->pr_nlwp, curpsinfo->pr_pid == pid,
	    curpsinfo->pr_ppid == ppid, curpsinfo->pr_pgid);
	printf("%d %d %d %d\n", curpsinfo->pr_sid, curpsinfo->pr_uid == uid,
	    curpsinfo->pr_euid == uid, curpsinfo->pr_gid == gid);
	printf("%d %d %d %d\n", curpsinfo->pr_egid == gid, curpsinfo->pr_addr,
	    curpsinfo->pr_ttydev == PRNODEV, curpsinfo->pr_start.tv_sec);
	printf("%d %d %d %d\n", curpsinfo->pr_fname == execname,
	    curpsinfo->pr_psargs == execname, curpsinfo->pr_wstat, curpsinfo->pr_argv);
	printf("%d %d %d %d %d %d\n", curpsinfo->pr_envp, curpsinfo->pr_dmodel == PR_MODEL_LP64,
	    curpsinfo->pr_taskid, curpsinfo->pr_projid, curpsinfo->pr_poolid,
	    curpsinfo->pr_zoneid);
	printf("%d %d %d %d %d\n", curlwpsinfo->pr_flag, curlwpsinfo->pr_lwpid == tid,
	    curlwpsinfo->pr_addr, curlwpsinfo->pr_wchan, curlwpsinfo->pr_stype);
	printf("%d %c %d %d %s|\n", curlwpsinfo->pr_state == SONPROC, curlwpsinfo->pr_sname,
	    curlwpsinfo->pr_syscall, curlwpsinfo->pr_pri, curlwpsinfo->pr_clname);
	printf("%d %d %d %d\n", curlwpsinfo->pr_name == execname, curlwpsinfo->pr_onpro == cpu,
	    curlwpsinfo->pr_bindpro, curlwpsinfo->pr_bindpset);
	exit(0);
}
/* EXPECT
 * 1 1 1 0
 * 0 1 1 1
 * 1 0 1 0
 * 1 1 0 0
 * 0 1 0 0 0 0
 * 0 1 0 0 0
 * 1 O 0 0 |
 * 1 1 -1 -1
 *
 */
