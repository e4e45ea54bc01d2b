/* NAME -C runs the preprocessor
 * OPTIONS -qC
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
