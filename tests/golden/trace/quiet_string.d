/* NAME quietly a traced string stands as it is
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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
