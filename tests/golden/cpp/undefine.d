/* NAME -U takes a macro away
 * OPTIONS -qC -DVALUE=4 -UVALUE
 */
BEGIN
{
#ifdef VALUE
	printf("defined\n");
#else
	printf("undefined\n");
#endif
	exit(0);
}
/* EXPECT
 * undefined
 *
 */
