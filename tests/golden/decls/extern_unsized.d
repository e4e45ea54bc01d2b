/* NAME the length of an array of the kernel need not be known
 * OPTIONS -q
 */
extern int v[];
BEGIN
{
	v[3] = 4;	/* the program's own */
	printf("%d\n", v[3]);
	exit(0);
}
/* EXPECT
 * 4
 *
 */
