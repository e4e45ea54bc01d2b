/* NAME a division in a predicate stands in parentheses
 * OPTIONS -q
 */
BEGIN / (8 / 4) == 2 /
{
	printf("yes\n");
	exit(0);
}
/* EXPECT
 * yes
 *
 */
