/* NAME errors have a tag with -x errtags
 * RUN $DTRACE -xerrtags -n 'BEGIN { nowhere(); }'; echo $?
 */

/* EXPECT
 * 1
 */
/* STDERR
 * [D_FUNC_UNDEF]
 */
