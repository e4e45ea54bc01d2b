/* NAME five hundred clauses all run
 * RUN { echo 'int x;'; i=0; while [ $i -lt 500 ]; do echo 'BEGIN { x++; }'; i=$((i+1)); done; cat $SCRIPT; } > many.d; $DTRACE -qs many.d
 */
BEGIN
{
	printf("%d\n", x);
	exit(0);
}
/* EXPECT
 * 500
 *
 */
