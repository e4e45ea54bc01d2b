/* NAME escapes in a format
 * OPTIONS -q
 */
BEGIN
{
	printf("a\tb\x41\101\\\"\n");
	exit(0);
}
/* EXPECT
 * a	bAA\"
 *
 */
