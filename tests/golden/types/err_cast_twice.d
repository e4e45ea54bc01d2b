/* NAME a word for a sign stands once in a cast
 * TAG D_DECL_COMBO
 */
BEGIN
{
	x = (unsigned unsigned int)1;
}
