/* NAME flags, widths and precisions as in C
 * OPTIONS -q
 */
BEGIN
{
	printf("[%5d] [%-5d] [%05d] [%+d] [% d] [%#x] [%#o] [%.3d]\n", 42, 42, 42, 42, 42, 42, 8, 7);
	exit(0);
}
/* EXPECT
 * [   42] [42   ] [00042] [+42] [ 42] [0x2a] [010] [007]
 *
 */
