/* NAME += changes what there is, it does not declare
 * TAG D_VAR_UNDEF
 */
BEGIN
{
	x += 1;
}
