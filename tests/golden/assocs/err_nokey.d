/* NAME a key is not empty
 * TAG D_SYNTAX
 */
BEGIN
{
	a[] = 1;
}
