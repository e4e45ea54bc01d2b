/* NAME an enumerator is defined once
 * TAG D_DECL_IDRED
 */
enum color {
	RED,
	RED
};
BEGIN
{
	exit(0);
}
