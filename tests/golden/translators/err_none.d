/* NAME a translation that was not declared is an error
 * TAG D_XLATE_NONE
 */
struct out {
	int more;
};
BEGIN
{
	trace(xlate <struct out> ((int *)0).more);
}
