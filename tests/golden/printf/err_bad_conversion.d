/* NAME a conversion that does not exist is an error
 * TAG D_SYNTAX
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	printf("%q\n", 1);
}
