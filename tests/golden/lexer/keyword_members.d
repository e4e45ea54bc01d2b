/* NAME probe descriptions may hold any characters of a name
 * OPTIONS -q -Z
 */
nothing:some-module:func*[a-z]:name-1.2
{
	printf("never\n");
}
BEGIN
{
	exit(0);
}
/* EXPECT
 *
 */
