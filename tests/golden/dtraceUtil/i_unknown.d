/* NAME -i with an id that no probe has
 * RUN $DTRACE -x errtags -i 99999; echo $?
 */

/* EXPECT
 * 1
 */
/* STDERR
 * invalid probe specifier 99999: [D_PDESC_INVAL] invalid probe identifier 99999
 */
