/* NAME characters are quoted
 * OPTIONS -q
 */
char c;

BEGIN
{
	c = 'x';
	print(c);
	print('\n');
	exit(0);
}
/* EXPECT
 * char 'x'
 * int 0xa
 *
 */
