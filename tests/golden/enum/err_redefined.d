/* NAME an enumerator is defined once
 * TAG D_UNKNOWN
 */
enum color {
	RED,
	RED
};
BEGIN
{
	exit(0);
}
