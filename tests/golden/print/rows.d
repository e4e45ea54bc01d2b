/* NAME an array of structs has a line for each
 * OPTIONS -q
 */
struct p {
	int a;
};
struct q {
	struct p list[2];
};
struct q x;

BEGIN
{
	x.list[1].a = 2;
	print(x);
	exit(0);
}
/* EXPECT
 * struct q {
 *     struct p [2] list = [
 *         struct p {
 *             int a = 0
 *         },
 *         struct p {
 *             int a = 0x2
 *         }
 *     ]
 * }
 *
 */
