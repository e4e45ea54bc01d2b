/* NAME what fits drops nothing
 * RUN $DTRACE -q -s $SCRIPT 2>&1
 */
BEGIN { a[1] = 2; @ = count(); printf("%d\n", a[1]); exit(0); }
END { clear(@); trunc(@); }
/* EXPECT
 * 2
 *
 */
