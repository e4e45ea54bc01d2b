/* NAME BEGIN fires once
 * OPTIONS -q
 */
BEGIN { @ = count(); }
tick-20ms { exit(0); }
/* EXPECT
 *
 *                 1
 */
