/* NAME a library's mistake is told with its path
 * RUN mkdir lib; echo 'inline int x = ;' > lib/bad.d; $DTRACE -x errtags -L lib -n BEGIN; echo $?
 */

/* EXPECT
 * 1
 */
/* STDERR
 * invalid probe specifier BEGIN: [D_SYNTAX] "lib/bad.d", line 1: syntax error
 */
