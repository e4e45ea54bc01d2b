/* NAME a type without a name is its keyword; a function's unknown parameters are ()
 * OPTIONS -q
 */
struct outer {
	struct { int i; } c;
	union { int j; } d;
	int (*f)();
};
struct outer o;
BEGIN { o.c.i = 1; o.d.j = 2; print(o); exit(0); }
/* EXPECT
 * struct outer {
 *     struct c = {
 *         int i = 0x1
 *     }
 *     union d = {
 *         int j = 0x2
 *     }
 *     int (*)() f = 0
 * }
 *
 */
