/* NAME an error in a header has its line
 * RUN printf "\n\ninline int x = nowhere;\n" > h.h; $DTRACE -x errtags -q -C -I. -s $SCRIPT; echo $?
 */
#include "h.h"
BEGIN { exit(0); }
/* EXPECT
 * 1
 */
/* STDERR
 * h.h", line 3: failed to resolve nowhere
 */
