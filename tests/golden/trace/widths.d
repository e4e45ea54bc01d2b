/* NAME trace() is as wide as the value's size needs
 * OPTIONS
 */
BEGIN
{
	trace((char)1);
	trace((short)2);
	trace((int)3);
	trace((long long)4);
	exit(0);
}
/* EXPECT
 * CPU     ID                    FUNCTION:NAME
 *   0      1                           :BEGIN    1     2        3                4
 *
 */
