/* NAME a predicate may name an array or thread variable that a later clause assigns
 * OPTIONS -q
 */
BEGIN
/!pending["disk"] && !self->began && self->of[1] == NULL/
{
	first = "none";
}

BEGIN
{
	pending["disk"]++;
	self->began = 1;
	self->of[1] = "text";
	printf("%s %d %d %s\n", first, pending["disk"], self->began, self->of[1]);
	exit(0);
}
/* EXPECT
 * none 1 1 text
 *
 */
