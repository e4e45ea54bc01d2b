/* NAME a clause without actions prints the probe
 * OPTIONS
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN {}
END {}
BEGIN
{
	exit(0);
}
/* EXPECT
 * CPU     ID                    FUNCTION:NAME
 *   0      1                           :BEGIN $
 *   0      1                           :BEGIN $
 *   0      2                             :END $
 *
 */
