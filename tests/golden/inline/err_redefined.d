/* NAME an inline is defined once
 * TAG D_DECL_IDRED
 */
inline int A = 2;
inline int A = 3;
BEGIN
{
	exit(0);
}
