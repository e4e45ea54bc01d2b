/* NAME a variable keeps all bits of a value; what is recorded and a key have their type's size
 * OPTIONS -q
 */
int last[int];
int key;
self int began;

BEGIN
{
	x = 0;
	x = 0x200000001;
	last[1] = 0x300000002;
	self->began = 0x400000003;
	printf("%x %x %x\n", 0x500000005 - x, 0x500000005 - last[1], 0x500000005 - self->began);
	printf("%d %d %d\n", x, last[1], self->began);
	printf("%x\n", 0x500000005 - (int)(x + 0L));
	key = 0x600000001;
	@[key] = count();
	@[1] = count();
	printf("%d %d %d\n", last[key], last[key + 0], last[(int)key]);
	exit(0);
}
/* EXPECT
 * 300000004 200000003 100000002
 * 1 2 3
 * 500000004
 * 2 2 2
 *
 *         1                2
 */
