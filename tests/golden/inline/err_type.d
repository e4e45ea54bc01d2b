/* NAME the expression fits the type of the inline
 * TAG D_OP_INCOMPAT
 */
inline int A = "text";
BEGIN
{
	exit(0);
}
