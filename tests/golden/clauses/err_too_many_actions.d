/* NAME a clause has 16384 actions at most
 * EXIT 1
 * RUN awk 'BEGIN { print "BEGIN {"; for (i = 0; i < 16385; i++) print "trace(1);"; print "}" }' > x.d
 * RUN exec $DTRACE -x errtags -q -s x.d
 */
/* STDERR
 * script x.d: [D_UNKNOWN] line 1: a clause may not have more than 16384 actions
 */
