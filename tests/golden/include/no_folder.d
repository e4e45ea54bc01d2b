/* NAME a library folder that is not there is passed over
 * RUN $DTRACE -L nowhere -qn 'BEGIN { printf("on\n"); exit(0); }'
 */

/* EXPECT
 * on
 *
 */
