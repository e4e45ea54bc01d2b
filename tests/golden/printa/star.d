/* NAME a width may be a key
 * OPTIONS -q
 */
BEGIN
{
	@a[8, 42] = count();
	@b[3, "hello"] = sum(7);
	@c[6] = count();
	printa("%*d|%@d\n", @a);
	printa("%.*s|%@5d|\n", @b);
	printa("|%@*d|\n", @c);
	exit(0);
}
/* EXPECT
 *       42|1
 * hel|    7|
 * |     1|
 *
 */
