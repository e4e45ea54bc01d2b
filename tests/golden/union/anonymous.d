/* NAME members of an anonymous union belong to the struct
 * OPTIONS -q
 */
struct s {
	int tag;
	union { int i; char c; };
};
struct s s;

BEGIN
{
	s.i = 65;
	printf("%c %d\n", s.c, sizeof(struct s));
	exit(0);
}
/* EXPECT
 * A 8
 *
 */
