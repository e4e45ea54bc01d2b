/* NAME -H names the headers on stderr
 * OPTIONS -qCH
 * FILE aux/values.h
 */
#include "values.h"
BEGIN
{
	printf("%d\n", ANSWER);
	exit(0);
}
/* EXPECT
 * 42
 *
 */
/* STDERR
 * values.h
 */
