/* NAME a clause may name several probes
 * OPTIONS -q
 */
BEGIN, END
{
	printf("%s\n", probename);
	exit(0);
}
/* EXPECT
 * BEGIN
 * END
 *
 */
