/* NAME copyin() of a bad address is a fault
 * OPTIONS -q
 */
ERROR { printf("fault\n"); }
BEGIN { x = copyinstr(0); }
BEGIN { exit(0); }
/* EXPECT
 * fault
 *
 */
