/* NAME copyin() of a bad address is a fault
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
ERROR { printf("fault\n"); }
BEGIN { x = copyinstr(0); }
BEGIN { exit(0); }
/* EXPECT
 * fault
 *
 */
