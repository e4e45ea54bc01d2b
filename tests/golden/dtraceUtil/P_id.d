/* NAME an id is a probe's, not a provider's
 * RUN $DTRACE -x errtags -P 1; echo $?
 */

/* EXPECT
 * 1
 */
/* STDERR
 * [D_PDESC_INVAL] probe identifier 1 not permitted when specifying providers
 */
