/* NAME an enumerator cannot have a built-in variable's name
 * TAG D_DECL_IDRED
 */
enum e { pid = 3 };
BEGIN
{
	exit(0);
}
