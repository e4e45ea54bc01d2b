/* NAME print() prints strings in quotes
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	print("text");
	exit(0);
}
/* EXPECT
 * string "text"
 *
 */
