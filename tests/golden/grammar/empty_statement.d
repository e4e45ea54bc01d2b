/* NAME empty statements do nothing
 * OPTIONS -q
 */
BEGIN
{
	;
	;;
	exit(0);
}
/* EXPECT
 *
 */
