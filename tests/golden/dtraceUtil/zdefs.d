/* NAME -x zdefs is -Z
 * OPTIONS -q -x zdefs
 */
nothing:::here
{
	exit(1);
}
BEGIN
{
	exit(0);
}
/* EXPECT
 *
 */
