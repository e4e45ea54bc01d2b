/* NAME -C runs the preprocessor
 * OPTIONS -qC
 * SKIP does not compile: inlines nest too deeply
 */
#define VALUE 3
#define TEXT "text"
BEGIN
{
	printf("%d %s\n", VALUE, TEXT);
	exit(0);
}
/* EXPECT
 * 3 text
 *
 */
