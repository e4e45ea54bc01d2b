/* NAME structured output knows the types of what is traced and formatted
 * RUN $DTRACE -O jsonl -s $SCRIPT | sed 's/.*"output"://'
 */
struct point { int x; char name[4]; };
struct point p;
enum color { RED, GREEN };
enum color c;

BEGIN
{
	p.x = 3;
	p.name[0] = 'a';
	c = GREEN;
	trace(p);
	trace(c);
	printf("%d %*d %s %p\n", c, 3, (short)-4, p.name, (void *)16);
	exit(0);
}
/* EXPECT
 * [{"type":"struct point","value":{"x":3,"name":"a"}},{"type":"enum color","value":"GREEN"},{"message":"1  -4 a 10\n"},{"type":"enum color","value":"GREEN"},{"type":"int","value":3},{"type":"short","value":-4},{"type":"char [4]","value":"a"},{"type":"void *","value":"0x10"},{"exit":0}]}
 */
