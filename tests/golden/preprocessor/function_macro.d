/* NAME macros with arguments make clauses
 * OPTIONS -qC
 */
#define SAY(n) BEGIN { printf("%d\n", n); }
SAY(1)
SAY(2)
BEGIN { exit(0); }
/* EXPECT
 * 1
 * 2
 *
 */
