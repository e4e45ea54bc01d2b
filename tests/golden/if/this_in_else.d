/* NAME a clause variable set in a branch is seen after it
 * OPTIONS -q
 */
BEGIN
{
	this->s = "none";
	if (1 == 2) {
		this->s = "then";
	} else {
		this->s = "else";
	}
	printf("%s\n", this->s);
	exit(0);
}
/* EXPECT
 * else
 *
 */
