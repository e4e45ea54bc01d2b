/* NAME -n takes a predicate
 * RUN $DTRACE -qn 'BEGIN / 0 / { printf("no\n"); }' -n 'BEGIN / 1 / { printf("yes\n"); exit(0); }'
 */

/* EXPECT
 * yes
 *
 */
