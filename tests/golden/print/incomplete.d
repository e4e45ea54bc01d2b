/* NAME print() needs a type that is complete
 * TAG D_TYPE_ERR
 */
struct later;

BEGIN
{
	print(*(struct later *)NULL);
}
