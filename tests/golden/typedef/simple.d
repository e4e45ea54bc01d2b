/* NAME a typedef names a type
 * OPTIONS -q
 */
typedef unsigned char byte_t;
typedef struct pair {
	byte_t a;
	int b;
} pair_t;
pair_t p;
BEGIN
{
	p.a = 0x141;
	p.b = 3;
	printf("%x %d %d\n", p.a, p.b, sizeof (pair_t));
	exit(0);
}
/* EXPECT
 * 41 3 8
 *
 */
