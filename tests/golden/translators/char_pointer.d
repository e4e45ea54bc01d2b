/* NAME a member's text stays itself as a char *, and is 0 or 1 as a number
 * OPTIONS -q
 */
struct in {
	int i;
};
struct out {
	string text;
};
translator struct out < struct in *P > {
	text = P->i == 1 ? "one" : "other";
};
BEGIN
{
	this->p = (struct in *)alloca(sizeof (struct in));
	this->p->i = 1;
	seen[1] = (char *)xlate <struct out> (this->p).text;
	seen[2] = "";
	self->shown = (int)seen[1] == 0 ? "none" : seen[1];
	printf("%s %d %d %d\n", self->shown, (int)seen[1], (int)seen[2], (int)seen[3]);
	exit(0);
}
/* EXPECT
 * one 1 1 0
 *
 */
