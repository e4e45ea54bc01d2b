/* NAME -U takes a macro away
 * OPTIONS -qC -DVALUE=4 -UVALUE
 * SKIP does not compile: inlines nest too deeply
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
