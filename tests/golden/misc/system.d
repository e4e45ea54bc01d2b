/* NAME system() runs a command in the order of the output
 * OPTIONS -qw
 */
BEGIN
{
	printf("one\n");
	system("echo %s %d", "two", 2);
	printf("three\n");
	exit(0);
}
/* EXPECT
 * one
 * two 2
 * three
 *
 */
