/* NAME a conversion that does not exist is an error
 * TAG D_SYNTAX
 */
BEGIN
{
	printf("%q\n", 1);
}
