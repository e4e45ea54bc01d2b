/* NAME ? is the width of a pointer
 * OPTIONS -q
 */
BEGIN
{
	printf("[%?x] [%0?x] [%-?x] [%0?p] [%?s]\n", 10, 10, 10, (void *)10, "ten");
	exit(0);
}
/* EXPECT
 * [               a] [000000000000000a] [a               ] [000000000000000a] [             ten]
 *
 */
