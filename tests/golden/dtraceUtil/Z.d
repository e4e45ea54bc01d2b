/* NAME -Z lets descriptions match nothing
 * OPTIONS -qZ
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
