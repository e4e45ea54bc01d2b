/* NAME a parameter has no storage class
 * TAG D_DECL_PARMCLASS
 * SKIP the command accepts it
 */
int f(static int);
BEGIN
{
	exit(0);
}
