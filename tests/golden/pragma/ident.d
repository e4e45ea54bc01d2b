/* NAME #ident does nothing
 * OPTIONS -q
 */
#ident "version 1"
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* EXPECT
 * ok
 *
 */
