/* NAME blocks of encoding=utf8 are cut to eighths, not rounded
 * OPTIONS -q -x encoding=utf8 -x aggzoom
 */
BEGIN { @ = lquantize(1, 1, 3, 1, 320); @ = lquantize(2, 1, 3, 1, 1); exit(0); }
/* EXPECT
 *
 *
 *            value  ------------- Distribution ------------- count    $
 *              < 1 |                                         0        $
 *                1 |██████████████████████████████████████   320      $
 *                2 |                                         1        $
 *             >= 3 |                                         0        $
 *
 */
