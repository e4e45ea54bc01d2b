/* NAME a version has two or three numbers
 * RUN for v in 1 1. 1.2.3.4 x 1.x; do $DTRACE -x version=$v -s $SCRIPT; echo $?; done
 */
BEGIN { exit(0); }
/* EXPECT
 * 1
 * 1
 * 1
 * 1
 * 1
 */
/* STDERR
 * Version is not properly formatted or is too large
 */
