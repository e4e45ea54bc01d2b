/* NAME a probe may be named by its number
 * RUN $DTRACE -q -n '1 { printf("%s\n", probename); exit(0); }'
 * SKIP does not compile: probe description :::1 does not match any probes
 */

/* EXPECT
 * BEGIN
 *
 */
