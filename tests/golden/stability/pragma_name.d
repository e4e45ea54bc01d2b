/* NAME attributes are for providers, and names that are there
 * TAG D_PRAGMA_INVAL
 */
#pragma D attributes Stable/Stable/Nonsense x
BEGIN { exit(0); }
