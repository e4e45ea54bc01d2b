/* NAME with rawtext a terminal gets the bytes, as a pipe always does
 * RUN $DTRACE -q -s $SCRIPT | cat -v; python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' $DTRACE -q -x rawtext -s $SCRIPT | tr -d '\r' | cat -v
 */
BEGIN { printf("%s\n", strjoin("\033[2J", "a\nb")); exit(0); }
/* EXPECT
 * ^[[2Ja
 * b
 *
 * ^[[2Ja
 * b
 *
 */
