/* NAME every unit of time can be a rate
 * RUN for u in ns nsec us usec ms msec s sec m min h hour d day hz; do $DTRACE -q -x switchrate=1$u -s $SCRIPT || echo $u; done
 */
BEGIN { exit(0); }
/* EXPECT
 *
 *
 *
 *
 *
 *
 *
 *
 *
 *
 *
 *
 *
 *
 *
 */
