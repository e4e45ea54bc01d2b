/* NAME the value of an enumerator is a constant
 * TAG D_DECL_ENCONST
 * SKIP the command says D_UNKNOWN instead
 */
enum color {
	RED = "red"
};
BEGIN
{
	exit(0);
}
