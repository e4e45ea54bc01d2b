/* NAME -m takes a provider and a module
 * RUN $DTRACE -x errtags -m 'a:b:c'; echo $?
 */

/* EXPECT
 * 1
 */
/* STDERR
 * [D_PDESC_INVAL] invalid probe description "a:b:c": Overspecified probe description
 */
