/* NAME many clauses of one probe
 * RUN { i=0; while [ $i -lt 500 ]; do echo 'BEGIN { x++; }'; i=$((i+1)); done; echo 'BEGIN { printf("%d\n", x); exit(0); }'; } > many.d; $DTRACE -qs many.d
 */

/* EXPECT
 * 500
 *
 */
