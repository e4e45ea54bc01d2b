/* NAME the value of an enumerator is a constant
 * TAG D_DECL_ENCONST
 */
enum color {
	RED = "red"
};
BEGIN
{
	exit(0);
}
