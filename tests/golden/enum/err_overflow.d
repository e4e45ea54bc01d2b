/* NAME the value of an enumerator fits an int
 * TAG D_DECL_ENOFLOW
 */
enum color {
	RED = 0x7fffffff,
	GREEN
};
BEGIN
{
	exit(0);
}
