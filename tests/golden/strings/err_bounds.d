/* NAME a string has strsize characters
 * TAG D_ARR_BOUNDS
 */
BEGIN
{
	trace(curlwpsinfo->pr_name[256]);
}
