/* NAME what is removed from it, too
 * TAG D_PRAGMA_OPTSET
 */
#pragma D option unsetenv=A
BEGIN { exit(0); }
