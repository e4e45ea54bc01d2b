/* NAME the expression of an inline uses what exists
 * TAG D_IDENT_UNDEF
 */
inline int A = nowhere + 1;
BEGIN
{
	exit(0);
}
