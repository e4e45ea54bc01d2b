/* NAME #pragma D attributes needs a name
 * TAG D_PRAGMA_MALFORM
 */
#pragma D attributes Stable/Stable/Common
BEGIN { exit(0); }
