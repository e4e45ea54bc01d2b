/* NAME to commit or discard a speculation that cannot be is a fault
 * OPTIONS -q
 */
BEGIN { commit(77); }
BEGIN { discard(2); }
BEGIN { commit(0); discard(0); }
ERROR { printf("fault %d\n", arg4); }
BEGIN { exit(0); }
/* EXPECT
 * fault 3
 * fault 3
 *
 */
