/* NAME without -C a #define is an error
 * TAG D_PRAGCTL_INVAL
 */
#define VALUE 3
BEGIN
{
	exit(0);
}
