/* NAME #pragma D error is #error
 * TAG D_PRAGERR
 */
#pragma D error stop
BEGIN
{
	exit(0);
}
