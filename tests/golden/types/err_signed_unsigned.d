/* NAME signed and unsigned exclude each other
 * TAG D_DECL_COMBO
 * SKIP the command says D_DECL_SIGNINT instead
 */
signed unsigned int x;
BEGIN
{
	exit(0);
}
