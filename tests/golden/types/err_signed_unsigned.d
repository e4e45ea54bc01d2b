/* NAME signed and unsigned exclude each other
 * TAG D_DECL_COMBO
 */
signed unsigned int x;
BEGIN
{
	exit(0);
}
