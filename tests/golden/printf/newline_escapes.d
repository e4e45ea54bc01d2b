/* NAME escapes in a format
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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
