/* NAME print() prints strings in quotes
 * OPTIONS -q
 */
BEGIN
{
	print("text");
	exit(0);
}
/* EXPECT
 * string [ "text" ]
 *
 */
