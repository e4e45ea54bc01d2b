/* NAME one without data shows its first two buckets
 * OPTIONS -q
 */
BEGIN { @ = llquantize(0, 10, 0, 3, 10); clear(@); exit(0); }
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *              < 1 |                                         0        $
 *                1 |                                         0        $
 *
 */
