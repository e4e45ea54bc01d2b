/* NAME strings end at strsize, wherever they are
 * OPTIONS -q -x strsize=4
 */
BEGIN
{
	x = "abcdefgh";
	this->y = "abcdefgh";
	self->z = "abcdefgh";
	a[1] = "abcdefgh";
	b["abcdX"] = 1;
	printf("%s %s %s %s %d %d\n", x, this->y, self->z, a[1], strlen(x), sizeof (x));
	printf("%s %d %s\n", "abcdefgh", strlen("abcdefgh"), substr("abcdefgh", 1));
	printf("%d %d %d\n", "abcdX" == "abcdY", x == "abcdY", b["abcdY"]);
	@["abcdX"] = count();
	@["abcdY"] = count();
	trace("abcdefgh");
	exit(0);
}
/* EXPECT
 * abcd abcd abcd abcd 4 4
 * abcd 4 bcd
 * 1 1 1
 * abcd
 *   abcd                                                              2
 */
