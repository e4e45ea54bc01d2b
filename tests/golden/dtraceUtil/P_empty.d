/* NAME an empty description is a mistake
 * RUN $DTRACE -x errtags -P ''; echo $?
 */

/* EXPECT
 * 1
 */
/* STDERR
 * [D_PDESC_INVAL] invalid probe description "": it is empty
 */
