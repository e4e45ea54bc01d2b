/* NAME the expression of an inline uses what exists
 * TAG D_IDENT_UNDEF
 * SKIP the command says D_UNKNOWN instead
 */
inline int A = nowhere + 1;
BEGIN
{
	exit(0);
}
