/* NAME lltostr() takes a base
 * OPTIONS -q
 */
BEGIN
{
	printf("%s %s %s\n", lltostr(255, 16), lltostr(8, 8), lltostr(35, 36));
	exit(0);
}
/* EXPECT
 * 0xff 010 z
 *
 */
