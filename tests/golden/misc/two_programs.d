/* NAME several -n are one program
 * RUN $DTRACE -q -n 'BEGIN { x = 4; }' -n 'BEGIN { printf("%d\n", x); exit(0); }'
 */
BEGIN { exit(0); }
/* EXPECT
 * 4
 *
 */
