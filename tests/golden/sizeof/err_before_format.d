/* NAME names and types come before formats
 * TAG D_SIZEOF_BITFIELD
 */
struct {
	int a : 3;
} x;
BEGIN
{
	printf("%d %d", sizeof (x.a));
}
