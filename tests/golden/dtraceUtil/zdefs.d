/* NAME -x zdefs is -Z
 * OPTIONS -q -x zdefs
 * SKIP does not compile: inlines nest too deeply
 */
nothing:::here
{
	exit(1);
}
BEGIN
{
	exit(0);
}
/* EXPECT
 *
 */
