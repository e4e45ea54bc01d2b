/* NAME the last array of a structure may be longer than declared
 * OPTIONS -q
 */
struct entry {
	int length;
	char name[2];
};
BEGIN
{
	this->e = (struct entry *)alloca(16);
	this->e->name[0] = 'a';
	this->e->name[5] = 'b';
	printf("%c%c\n", this->e->name[0], this->e->name[5]);
	exit(0);
}
/* EXPECT
 * ab
 *
 */
