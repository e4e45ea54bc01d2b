/* NAME a failing preprocessor fails the compilation
 * RUN $DTRACE -C -s $SCRIPT; echo $?
 */
#include "nowhere.h"
BEGIN
{
	exit(0);
}
/* EXPECT
 * 1
 */
