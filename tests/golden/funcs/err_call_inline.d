/* NAME an inline is no function
 * TAG D_FUNC_IDENT
 */
inline int foo = 3;

BEGIN
{
	foo(2);
}
