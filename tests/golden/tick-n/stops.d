/* NAME a tick fires once before exit() ends everything
 * OPTIONS -q
 */
tick-1ms
{
	@ = count();
	exit(0);
}
/* EXPECT
 *
 *                 1
 */
