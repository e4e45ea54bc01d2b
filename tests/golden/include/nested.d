/* NAME a header may name another
 * RUN mkdir d; printf "#define N 5\n" > d/b.h; printf "#include \"b.h\"\n#define M (N + 1)\n" > d/a.h; $DTRACE -q -C -Id -s $SCRIPT
 */
#include <a.h>
BEGIN { printf("%d %d\n", M, N); exit(0); }
/* EXPECT
 * 6 5
 *
 */
