/* NAME messages never steer a terminal, and stay one line each
 * RUN python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' $DTRACE -q -w -s $SCRIPT 2>&1 | tr -d '\r' | cat -v
 */
BEGIN { freopen("/nowhere/%s", strjoin("\033[2J", "a\nb")); exit(0); }
/* EXPECT
 * ringside: freopen(): cannot write to /nowhere/\033[2Ja\nb: No such file or directory
 *
 */
