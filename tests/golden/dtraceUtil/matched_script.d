/* NAME the number of probes that a script matched is said
 * OPTIONS
 */
BEGIN
{
	exit(0);
}
END
{
	trace(1);
}
/* EXPECT
 * CPU     ID                    FUNCTION:NAME
 *   0      1                           :BEGIN $
 *   0      2                             :END         1
 *
 */
/* STDERR
 * script 'matched_script.d' matched 2 probes
 */
