/* NAME keys that do not fit are counted
 * OPTIONS -q -x aggsize=512 -x bufresize=manual
 */
tick-1ms
{
	@[i++] = count();
	@[i++] = count();
	@[i++] = count();
	@[i++] = count();
	@[i++] = count();
	@[i++] = count();
	@[i++] = count();
	@[i++] = count();
	@[i++] = count();
	@[i++] = count();
}
tick-1ms
/ i >= 200 /
{
	trunc(@);
	exit(0);
}
/* EXPECT
 *
 */
/* STDERR
 * aggregation drop
 */
