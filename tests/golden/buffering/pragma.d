/* NAME a policy in #pragma D option is checked
 * TAG D_PRAGMA_OPTSET
 */
#pragma D option bufpolicy=heap
BEGIN { exit(0); }
