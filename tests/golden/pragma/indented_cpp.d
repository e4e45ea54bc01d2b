/* NAME indented pragmas pass the preprocessor
 * OPTIONS -C
 */

	#pragma D option quiet
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* EXPECT
 * ok
 *
 */
