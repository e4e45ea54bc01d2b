/* NAME a variable has a complete type
 * TAG D_DECL_INCOMPLETE
 */
struct nowhere x;
BEGIN
{
	exit(0);
}
