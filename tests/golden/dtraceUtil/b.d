/* NAME -b sets the size of the buffers
 * OPTIONS -q -b 64k
 */
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* EXPECT
 * ok
 *
 */
