/* NAME stackdepth and ustackdepth are uint32_t
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d\n", sizeof(stackdepth), sizeof(ustackdepth));
	exit(0);
}
/* EXPECT
 * 4 4
 *
 */
