/* NAME strings with width and precision
 * OPTIONS -q
 */
BEGIN
{
	printf("[%s] [%8s] [%-8s] [%.2s]\n", "abc", "abc", "abc", "abc");
	exit(0);
}
/* EXPECT
 * [abc] [     abc] [abc     ] [ab]
 *
 */
