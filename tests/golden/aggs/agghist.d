/* NAME agghist has key columns by type, and a whole scale under aggzoom
 * OPTIONS -q
 */
#pragma D option agghist
#pragma D option aggzoom
BEGIN { @b["s"] = sum(3); @b["t"] = sum(15); @b["u"] = sum(18); @c[7] = count(); exit(0); }
/* EXPECT
 *
 *
 *               key  ------------- Distribution ------------- count    $
 *                 s |@@@@@@@                                  3        $
 *                 t |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@        15       $
 *                 u |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 18       $
 *
 *       key  ------------- Distribution ------------- count    $
 *         7 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
 */
