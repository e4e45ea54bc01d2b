/* NAME a predicate of BEGIN is asked
 * OPTIONS -q
 */
int x;

BEGIN
/x/
{
	printf("no\n");
}

BEGIN
/!x/
{
	printf("yes\n");
	exit(0);
}
/* EXPECT
 * yes
 *
 */
