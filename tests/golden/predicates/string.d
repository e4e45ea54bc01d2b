/* NAME strings compare in a predicate
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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
