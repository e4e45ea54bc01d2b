/* NAME #pragma D binding needs a version
 * TAG D_PRAGMA_INVAL
 */
#pragma D binding "nonsense" x
inline int x = 1;
BEGIN { exit(0); }
