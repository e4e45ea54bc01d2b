/* NAME arg5 is the address of a bad load
 * OPTIONS -q
 */
BEGIN { trace(*(char *)4660); }
BEGIN { exit(0); }
ERROR { printf("%d 0x%x\n", arg4, arg5); }
/* EXPECT
 * 1 0x1234
 *
 */
/* STDERR
 * invalid address (0x1234) in action #1
 */
