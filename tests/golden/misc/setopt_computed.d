/* NAME the name and the value of setopt() may be computed
 * OPTIONS
 */
BEGIN
{
	n = 1;
	@a["first"] = sum(1);
	@b["first"] = sum(4);
	@a["second"] = sum(2);
	@b["second"] = sum(3);
	printa("%s %@d %@d\n", @a, @b);
}
BEGIN
{
	setopt(strjoin("qui", "et"));
	setopt("aggsortpos", lltostr(n));
	setopt(strjoin("aggsort", "rev"), strjoin("o", "n"));
	setopt(strjoin("no", "ne"), "1");
	printa("%s %@d %@d\n", @a, @b);
	exit(0);
}
/* EXPECT
 * CPU     ID                    FUNCTION:NAME
 *   0      1                           :BEGIN first 1 4
 * second 2 3
 *
 *   0      1                           :BEGIN first 1 4
 * second 2 3
 *
 */
/* STDERR
 * couldn't set option "none" to "1"
 */
