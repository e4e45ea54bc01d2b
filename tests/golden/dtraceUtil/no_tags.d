/* NAME errors have no tag without it
 * RUN $DTRACE -n 'BEGIN { nowhere(); }' 2>&1 | grep -c D_FUNC
 */

/* EXPECT
 * 0
 */
