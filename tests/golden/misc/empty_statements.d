/* NAME empty statements change nothing
 * OPTIONS -q
 */
BEGIN
{
	;;
	printf("a\n");;
	;
	exit(0);
}
/* EXPECT
 * a
 *
 */
