/* NAME strings compare in a predicate
 * OPTIONS -q
 */
BEGIN / probename == "BEGIN" && probeprov == "dtrace" /
{
	printf("yes\n");
	exit(0);
}
/* EXPECT
 * yes
 *
 */
