/* NAME goto is reserved and does nothing
 * TAG D_SYNTAX
 */
BEGIN
{
	goto end;
}
