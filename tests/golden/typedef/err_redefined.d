/* NAME a type name does not change its type
 * TAG D_DECL_IDRED
 */
typedef int number_t;
typedef char number_t;
BEGIN
{
	exit(0);
}
