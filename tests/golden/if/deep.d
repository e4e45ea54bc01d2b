/* NAME five levels of if
 * OPTIONS -q
 */
BEGIN
{
	if (1) { if (1) { if (1) { if (1) { if (1) { printf("deep\n"); } } } } }
	exit(0);
}
/* EXPECT
 * deep
 *
 */
