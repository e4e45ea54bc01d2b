/* NAME clause variables may be declared
 * OPTIONS -q
 */
this char n;

BEGIN
{
	this->n = 300;
	printf("%d\n", this->n);
	exit(0);
}
/* EXPECT
 * 44
 *
 */
