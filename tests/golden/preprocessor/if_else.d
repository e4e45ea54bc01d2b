/* NAME conditions choose what is compiled
 * OPTIONS -qC
 */
#define LEVEL 2
BEGIN
{
#if LEVEL == 1
	printf("one\n");
#elif LEVEL == 2
	printf("two\n");
#else
	printf("many\n");
#endif
	exit(0);
}
/* EXPECT
 * two
 *
 */
