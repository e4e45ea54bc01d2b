/* NAME speculating with zero records nothing
 * OPTIONS -q
 * SKIP speculate() is not supported yet
 */
BEGIN
{
	speculate(0);
	printf("never\n");
}
BEGIN
{
	exit(0);
}
/* EXPECT
 *
 */
