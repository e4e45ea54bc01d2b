/* NAME -m takes a provider and a module, and a machine before them
 * RUN $DTRACE -x errtags -m 'a:b:c:d'; echo $?
 */

/* EXPECT
 * 1
 */
/* STDERR
 * [D_PDESC_INVAL] invalid probe description "a:b:c:d": Overspecified probe description
 */
