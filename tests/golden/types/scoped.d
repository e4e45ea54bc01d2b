/* NAME a type's name may have its scope: D, C or a module
 * OPTIONS -q
 */
struct pt { int x; int y; };
union u { char c; int x; };
typedef struct pt pt_t;
typedef struct link { struct D`link *next; D`pt_t at; } link_t;
enum color { RED };
D`pt_t declared;
struct D`pt tagged;
C`int number;
BEGIN
{
	trace(offsetof(struct D`pt, y));
	printf(" %d %d %d", sizeof (D`pt_t), sizeof (union D`u), sizeof (enum D`color));
	printf(" %d %d", sizeof (declared), sizeof (tagged));
	printf(" %d %d", (D`int *)0 == NULL, sizeof (C`long));
	printf(" %d", offsetof(D`link_t, at));
	this->p = (struct D`pt *)alloca(sizeof (D`pt_t));
	this->p->y = 3;
	printf(" %d", ((D`pt_t *)this->p)->y);
	declared = *(D`pt_t *)this->p;
	number = 70000;
	printf(" %d %d\n", declared.y, number);
	exit(0);
}
/* EXPECT
 * 4 8 4 4 8 8 1 8 8 3 3 70000
 *
 */
