/* NAME #include reads a header beside the script
 * OPTIONS -qC
 * FILE aux/values.h
 */
#include "values.h"
BEGIN
{
	printf("%d %d\n", ANSWER, ADD(1, 2));
	exit(0);
}
/* EXPECT
 * 42 3
 *
 */
