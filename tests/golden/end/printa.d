/* NAME what END prints with printa() is not printed again
 * OPTIONS -q
 */
BEGIN { @a = count(); @b = sum(7); exit(0); }
END { printa("%@d\n", @a); }
/* EXPECT
 * 1
 *
 *                 7
 */
