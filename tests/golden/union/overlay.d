/* NAME the members of a union share their place
 * OPTIONS -q
 */
union value {
	int i;
	char c[4];
};
union value v;
BEGIN
{
	v.i = 0x41424344;
	printf("%c%c %d\n", v.c[0], v.c[3], sizeof (union value));
	exit(0);
}
/* EXPECT
 * DA 4
 *
 */
