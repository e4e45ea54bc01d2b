/* NAME -C serves -n, too
 * RUN $DTRACE -qC -DX=5 -n 'BEGIN { trace(X); exit(0); }'
 */

/* EXPECT
 * 5
 */
