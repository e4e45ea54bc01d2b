/* NAME a subroutine's value may be dropped
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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
