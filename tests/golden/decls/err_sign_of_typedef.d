/* NAME unsigned goes with the words for integers, not with a typedef of one
 * TAG D_DECL_SIGNINT
 */
typedef int number_t;
unsigned number_t *x;
BEGIN
{
	exit(0);
}
