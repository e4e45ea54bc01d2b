/* NAME a cleanrate of 0 is as often as can be
 * OPTIONS -q -x cleanrate=0
 */
BEGIN
{
	printf("begun\n");
}
tick-20ms
{
	exit(0);
}
/* EXPECT
 * begun
 *
 */
