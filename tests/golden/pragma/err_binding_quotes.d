/* NAME a version stands in quotes
 * TAG D_PRAGMA_MALFORM
 */
int x;
#pragma D binding 1.0 x
BEGIN { exit(0); }
