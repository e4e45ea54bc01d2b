/* NAME a translator makes a struct of another
 * OPTIONS -q
 */
struct in {
	int i;
	char c;
};
struct out {
	int doubled;
	char letter;
};
translator struct out < struct in *P > {
	doubled = P->i * 2;
	letter = P->c;
};
BEGIN
{
	this->p = (struct in *)alloca(sizeof (struct in));
	this->p->i = 21;
	this->p->c = 'x';
	printf("%d %c\n", xlate <struct out> (this->p).doubled, xlate <struct out> (this->p).letter);
	exit(0);
}
/* EXPECT
 * 42 x
 *
 */
