/* NAME a subroutine's value may be dropped
 * OPTIONS -q
 */
BEGIN
{
	strlen("abc");
	printf("ok\n");
	exit(0);
}
/* EXPECT
 * ok
 *
 */
