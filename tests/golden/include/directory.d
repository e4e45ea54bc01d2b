/* NAME -I says where headers lie
 * OPTIONS -qC -I deep
 * FILE aux/deep
 */
#include <inner.h>
BEGIN
{
	printf("%d\n", INNER);
	exit(0);
}
/* EXPECT
 * 7
 *
 */
