/* NAME clause variables are shared by the clauses of one firing
 * OPTIONS -q
 */
this int number;
BEGIN
{
	this->number = 4;
}
BEGIN
{
	this->number++;
	printf("%d\n", this->number);
	exit(0);
}
/* EXPECT
 * 5
 *
 */
