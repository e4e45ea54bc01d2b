/* NAME -Z lets descriptions match nothing
 * OPTIONS -qZ
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
