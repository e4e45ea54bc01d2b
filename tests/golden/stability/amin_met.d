/* NAME amin is met by what is as stable
 * OPTIONS -q -x amin=Stable/Stable/Common
 */
BEGIN { trace(pid - pid); exit(0); }
/* EXPECT
 * 0
 */
