/* NAME speculating with zero records nothing
 * OPTIONS -q
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
