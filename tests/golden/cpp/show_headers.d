/* NAME -H names the headers on stderr
 * OPTIONS -qCH
 * FILE aux/values.h
 * SKIP does not compile: inlines nest too deeply
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
