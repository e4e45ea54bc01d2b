/* NAME empty statements do nothing
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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
