/* NAME a header may hold declarations
 * OPTIONS -qC
 * FILE aux/types.h
 */
#include "types.h"
BEGIN
{
	printf("%d\n", sizeof (struct shared));
	exit(0);
}
/* EXPECT
 * 16
 *
 */
