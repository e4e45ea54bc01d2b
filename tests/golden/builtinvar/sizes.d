/* NAME the types of built-in variables
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d %d %d %d\n", sizeof (timestamp), sizeof (pid), sizeof (uid), sizeof (id),
	    sizeof (arg0), sizeof (stackdepth));
	exit(0);
}
/* EXPECT
 * 8 4 4 4 8 4
 *
 */
