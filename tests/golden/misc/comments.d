/* NAME comments stand anywhere between words
 * OPTIONS -q
 */
BEGIN /* one */ /* two */
{
	printf(/* a */ "%d\n" /* b */, /* c */ 1 + /* d */ 2);
	exit(0) /* e */;
}
/* EXPECT
 * 3
 *
 */
