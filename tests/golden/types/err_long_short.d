/* NAME no type is long and short
 * TAG D_UNKNOWN
 */
long short x;
BEGIN
{
	exit(0);
}
