/* NAME toupper() and tolower()
 * OPTIONS -q
 */
BEGIN
{
	printf("%s %s\n", toupper("MiXed 1"), tolower("MiXed 1"));
	exit(0);
}
/* EXPECT
 * MIXED 1 mixed 1
 *
 */
