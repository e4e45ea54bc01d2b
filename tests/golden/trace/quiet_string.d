/* NAME quietly a traced string stands as it is
 * OPTIONS -q
 */
BEGIN
{
	trace("some text");
	trace("\n");
	exit(0);
}
/* EXPECT
 * some text
 *
 */
