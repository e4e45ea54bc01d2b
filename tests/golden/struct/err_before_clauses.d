/* NAME declarations come before clauses
 * TAG D_DECL_INCOMPLETE
 */
struct s {
	struct t m;
};
BEGIN
{
	= 1;
}
