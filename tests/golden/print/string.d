/* NAME print() prints strings in quotes
 * OPTIONS -q
 * SKIP print() is not supported yet
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
