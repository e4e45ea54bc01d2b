/* NAME # makes strings, ## joins names
 * OPTIONS -qC
 */
#define STR(x) #x
#define JOIN(a, b) a##b
BEGIN
{
	JOIN(va, lue) = 6;
	printf("%s %d\n", STR(hello), value);
	exit(0);
}
/* EXPECT
 * hello 6
 *
 */
