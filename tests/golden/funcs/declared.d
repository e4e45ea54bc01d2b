/* NAME a prototype may be declared
 * OPTIONS -q
 */
int other(int, char *);
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* EXPECT
 * ok
 *
 */
