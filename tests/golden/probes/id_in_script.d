/* NAME a clause of a script may name probes by their numbers
 * OPTIONS -q
 */
1, 2
{
	printf("%s\n", probename);
}
BEGIN
{
	exit(0);
}
/* EXPECT
 * BEGIN
 * END
 *
 */
