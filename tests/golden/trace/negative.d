/* NAME small signed types print their sign
 * OPTIONS -q
 */
BEGIN
{
	trace((char)-1);
	trace(" ");
	trace((short)-2);
	trace(" ");
	trace((long long)-3);
	exit(0);
}
/* EXPECT
 * -1 -2 -3
 */
