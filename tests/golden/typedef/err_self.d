/* NAME a typedef has no second storage class
 * TAG D_DECL_CLASS
 */
typedef self int number_t;
BEGIN
{
	exit(0);
}
