/* NAME ERROR may have a predicate
 * OPTIONS -q
 */
int z;
BEGIN { trace(1 / z); }
BEGIN { exit(0); }
ERROR
/arg4 == 4/
{
	printf("divided\n");
}
ERROR
/arg4 != 4/
{
	printf("other\n");
}
/* EXPECT
 * divided
 *
 */
/* STDERR
 * divide-by-zero
 */
