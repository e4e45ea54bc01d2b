/* NAME the last statement needs no semicolon
 * OPTIONS -q
 */
BEGIN
{
	printf("x\n");
	exit(0)
}
/* EXPECT
 * x
 *
 */
