/* NAME a translation that was not declared is an error
 * TAG D_XLATE_NONE
 * SKIP xlate is not supported yet
 */
struct out {
	int more;
};
BEGIN
{
	trace(xlate <struct out> ((int *)0).more);
}
