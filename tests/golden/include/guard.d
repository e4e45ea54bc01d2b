/* NAME a header that guards itself can be named twice
 * RUN printf "#ifndef H\n#define H\ninline int seven = 7;\n#endif\n" > h.h; $DTRACE -q -C -I. -s $SCRIPT
 */
#include "h.h"
#include "h.h"
BEGIN { printf("%d\n", seven); exit(0); }
/* EXPECT
 * 7
 *
 */
