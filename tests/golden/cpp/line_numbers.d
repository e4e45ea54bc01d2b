/* NAME errors name the line of the script before the preprocessor
 * OPTIONS -C
 * TAG D_IDENT_UNDEF
 * SKIP the command says D_UNKNOWN instead
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
