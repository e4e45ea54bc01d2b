/* NAME -I says where headers lie
 * OPTIONS -qC -I deep
 * FILE aux/deep
 * SKIP does not compile: inlines nest too deeply
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
