/* NAME a clause without actions prints the probe
 * OPTIONS
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
