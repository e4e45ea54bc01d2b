/* NAME divisions by a variable zero are faults, all of them
 * OPTIONS -q
 */
ERROR { n++; }
BEGIN { z = 0; }
BEGIN { x = 1 / z; }
BEGIN { x = 1 % z; }
BEGIN { x = (uint64_t)1 / z; }
BEGIN { x = (uint64_t)1 % z; }
BEGIN { printf("%d\n", n); exit(0); }
/* EXPECT
 * 4
 *
 */
