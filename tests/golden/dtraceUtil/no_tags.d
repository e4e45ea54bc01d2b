/* NAME errors have no tag without it
 * RUN $DTRACE -n 'BEGIN { nowhere(); }' 2>&1 | grep D_FUNC; echo end
 */

/* EXPECT
 * end
 */
