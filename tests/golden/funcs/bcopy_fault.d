/* NAME bcopy() writes nothing but scratch memory
 * OPTIONS -q
 */
ERROR
{
	printf("fault\n");
	exit(0);
}
BEGIN
{
	bcopy("hello", (void *)16, 6);
}
/* EXPECT
 * fault
 *
 */
