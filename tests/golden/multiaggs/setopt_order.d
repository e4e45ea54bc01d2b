/* NAME setopt() changes the order while tracing
 * OPTIONS -q
 */
BEGIN
{
	@a[1] = sum(5);
	@b[1] = sum(1);
	@a[2] = sum(3);
	@b[2] = sum(9);
	printa("%d: %@d %@d\n", @a, @b);
	setopt("aggsortpos", "1");
	printa("%d: %@d %@d\n", @a, @b);
	setopt("aggsortrev");
	printa("%d: %@d %@d\n", @a, @b);
	exit(0);
}
/* EXPECT
 * 2: 3 9
 * 1: 5 1
 * 1: 5 1
 * 2: 3 9
 * 2: 3 9
 * 1: 5 1
 *
 */
