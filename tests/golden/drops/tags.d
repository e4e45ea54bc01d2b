/* NAME droptags name the kind
 * OPTIONS -q -x droptags -x dynvarsize=1k
 */
tick-1ms
{
	a[i++] = 1;
}
tick-1ms
/i > 400/
{
	exit(0);
}
/* EXPECT
 *
 */
/* STDERR
 * [DTRACEDROP_DYNAMIC]
 * dynamic variable drop
 */
