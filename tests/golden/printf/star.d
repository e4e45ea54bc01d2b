/* NAME a star takes the width from an argument
 * OPTIONS -q
 */
BEGIN
{
	printf("[%*d] [%-*d] [%.*s]\n", 6, 42, 4, 7, 2, "abc");
	exit(0);
}
/* EXPECT
 * [    42] [7   ] [ab]
 *
 */
