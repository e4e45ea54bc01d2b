/* NAME a predicate may name what its own clause's body defines
 * OPTIONS -q
 */
BEGIN
/!self->begun/
{
	self->begun = 1;
	printf("self\n");
}

BEGIN
/this->x == 0 && !seen["a", 1] && !self->calls[pid]/
{
	this->x = 7;
	seen["a", 1] = 1;
	self->calls[pid]++;
	printf("this %d, arrays\n", this->x);
}

BEGIN
/name == "" || strlen(name) == 99/
{
	name = "set";
	printf("string\n");
}

tick-1ms
/c < 3/
{
	c++;
	printf("%d\n", c);
}

tick-1ms
/c == 3/
{
	exit(0);
}
/* EXPECT
 * self
 * this 7, arrays
 * string
 * 1
 * 2
 * 3
 *
 */
