/* NAME char is not long
 * TAG D_DECL_CHARATTR
 */
long char x;
BEGIN
{
	exit(0);
}
