/* NAME the number of a macro argument fits an integer
 * TAG D_MACRO_OFLOW
 */
BEGIN
{
	trace($99999999999999999999);
}
