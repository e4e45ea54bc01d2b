/* NAME a fault in a predicate is in action 0
 * OPTIONS -q
 */
int z;
BEGIN
/(1 / z)/
{
	printf("no\n");
}
BEGIN { exit(0); }
ERROR { printf("%d\n", arg2); }
/* EXPECT
 * 0
 *
 */
/* STDERR
 * divide-by-zero in predicate
 */
