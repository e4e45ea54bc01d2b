/* NAME a tick knows the interval that it was late by, or none
 * OPTIONS -q
 */
tick-1ms
{
	x = arg0 + arg1;
	printf("ok\n");
	exit(0);
}
/* EXPECT
 * ok
 *
 */
