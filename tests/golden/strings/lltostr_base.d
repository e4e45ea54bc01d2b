/* NAME lltostr() takes a base
 * OPTIONS -q
 */
BEGIN
{
	printf("%s %s %s\n", lltostr(255, 16), lltostr(8, 8), lltostr(35, 36));
	printf("%s %s %s\n", lltostr(0, 16), lltostr(0, 8), lltostr(0, 2));
	exit(0);
}
/* EXPECT
 * 0xff 010 z
 * 0x0 0 0
 *
 */
