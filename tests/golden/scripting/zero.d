/* NAME $0 is the script
 * OPTIONS -q
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
