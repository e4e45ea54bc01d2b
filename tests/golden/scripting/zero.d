/* NAME $0 is the script
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	printf("%s\n", $$0);
	exit(0);
}
/* EXPECT
 * zero.d
 *
 */
