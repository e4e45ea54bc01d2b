/* NAME also over all enumerations
 * TAG D_DECL_IDRED
 */
enum color {
	RED
};
enum light {
	RED
};
BEGIN
{
	exit(0);
}
