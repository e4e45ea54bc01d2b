/* NAME errors name the line of the script before the preprocessor
 * OPTIONS -C
 * TAG D_IDENT_UNDEF
 */
#define ONE \
	1 + \
	1
BEGIN
{
	trace(ONE);
	trace(nowhere);
}
/* STDERR
 * line 11
 */
