/* NAME letters of flags may stand together
 * RUN $DTRACE -qn 'BEGIN { trace("text"); exit(0); }'
 */

/* EXPECT
 * text
 */
