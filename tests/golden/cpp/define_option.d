/* NAME -D defines a macro for the preprocessor
 * OPTIONS -qC -DVALUE=4 -D EMPTY
 */
BEGIN
{
#ifdef EMPTY
	printf("%d\n", VALUE);
#endif
	exit(0);
}
/* EXPECT
 * 4
 *
 */
