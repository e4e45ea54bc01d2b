/* NAME a parameter has no storage class
 * TAG D_DECL_PARMCLASS
 */
int f(static int);
BEGIN
{
	exit(0);
}
