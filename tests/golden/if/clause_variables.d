/* NAME clause variables live through an if
 * OPTIONS -q
 */
BEGIN
{
	this->n = 4;
	if (this->n > 2) {
		this->n *= 10;
	}
	printf("%d\n", this->n);
	exit(0);
}
/* EXPECT
 * 40
 *
 */
