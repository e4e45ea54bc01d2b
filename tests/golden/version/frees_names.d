/* NAME names that came later are the program's
 * OPTIONS -q -x version=1.0
 */
BEGIN
{
	ucaller = 1;
	strstr = 2;
	llquantize = 3;
	printf("%d %d %d\n", ucaller, strstr, llquantize);
	exit(0);
}
/* EXPECT
 * 1 2 3
 *
 */
