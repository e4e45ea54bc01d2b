/* NAME dynamic variables that do not fit are counted
 * OPTIONS -q -x dynvarsize=1k
 */
tick-1ms
{
	a[i++] = 1;
	a[i++] = 1;
	a[i++] = 1;
	a[i++] = 1;
	a[i++] = 1;
	a[i++] = 1;
	a[i++] = 1;
	a[i++] = 1;
	a[i++] = 1;
	a[i++] = 1;
}
tick-1ms
/ i >= 200 /
{
	exit(0);
}
/* EXPECT
 *
 */
/* STDERR
 * dynamic variable drops
 */
