/* NAME rates take every unit
 * OPTIONS -q -x switchrate=10hz -x aggrate=100ms -x statusrate=500000us -x cleanrate=50hz
 */
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* EXPECT
 * ok
 *
 */
