/* NAME a program has room for 64256 global variables
 * EXIT 1
 * RUN awk 'BEGIN { for (i = 0; i < 64300; i++) print "int v" i ";"; print "BEGIN { exit(0); }" }' > x.d
 * RUN exec $DTRACE -x errtags -q -s x.d
 */
/* STDERR
 * [D_ID_OFLOW] line 64256:
 */
