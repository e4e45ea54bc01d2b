/* NAME the data model is LP64
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d %d %d %d\n", sizeof (char), sizeof (short), sizeof (int), sizeof (long),
	    sizeof (long long), sizeof (void *));
	exit(0);
}
/* EXPECT
 * 1 2 4 8 8 8
 *
 */
