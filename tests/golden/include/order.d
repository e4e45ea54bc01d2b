/* NAME -I folders are searched in their order
 * RUN mkdir a b; echo "#define W 1" > a/h.h; echo "#define W 2" > b/h.h; $DTRACE -q -C -Ib -Ia -s $SCRIPT
 */
#include <h.h>
BEGIN { printf("%d\n", W); exit(0); }
/* EXPECT
 * 2
 *
 */
