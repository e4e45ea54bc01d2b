/* NAME to the preprocessor, D is no GNU C
 * OPTIONS -qC
 */
#ifdef __GNUC__
#error GNU C
#endif
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* EXPECT
 * ok
 *
 */
