/* NAME a traced string is padded to 33 columns
 * OPTIONS
 */
BEGIN
{
	trace("text");
	exit(0);
}
/* EXPECT
 * CPU     ID                    FUNCTION:NAME
 *   0      1                           :BEGIN   text                             $
 *
 */
