/* NAME -b sets the size of the buffers
 * OPTIONS -q -b 64k
 * SKIP does not compile: inlines nest too deeply
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
