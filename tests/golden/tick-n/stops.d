/* NAME a tick fires once before exit() ends everything
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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
