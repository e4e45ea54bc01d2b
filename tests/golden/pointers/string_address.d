/* NAME a pointer to char takes the address of a string, and a string what is at an address
 * OPTIONS -q
 */
char *p;
BEGIN
{
	p = "text";
	printf("%c %s", p[1], (string)p);
	printf(" %s\n", pid ? "yes" : NULL);
	exit(0);
}
/* EXPECT
 * e text yes
 *
 */
