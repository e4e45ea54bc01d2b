/* NAME the expression that failed is named after aggregations of every kind
 * OPTIONS -q
 */
int z;
BEGIN { @a["x", 1] = count(); @b = count(); trace(1 / z); }
BEGIN { @c["x"] = sum(1); @d["x"] = quantize(1, 2); trace(2 / z); }
BEGIN { @e[3 / z] = count(); }
BEGIN { clear(@a); clear(@b); clear(@c); clear(@d); trunc(@a); trunc(@b); trunc(@c); trunc(@d); exit(0); }
/* EXPECT
 *
 */
/* STDERR
 * divide-by-zero in action #5 at DIF offset 8: after_count.d:5: 1 / z
 * divide-by-zero in action #6 at DIF offset 8: after_count.d:6: 2 / z
 * divide-by-zero in action #1 at DIF offset 8: after_count.d:7: 3 / z
 */
