/* NAME a rate in #pragma D option is checked
 * TAG D_PRAGMA_OPTSET
 */
#pragma D option switchrate=x
BEGIN { exit(0); }
