/* NAME a store cuts a value to the variable, but for one of 8 bytes that goes into 4
 * OPTIONS -q
 */
uint16_t x;
uint32_t y;
unsigned u;
short s;
int last;
self uint8_t byte;
this char c;
short elements[int];
self int8_t of_thread[string];
uint32_t wide[int];
enum color { RED, BLUE = 3 } shade;

BEGIN
{
	x = 70000;
	y = x;
	u = -2;
	printf("%d %d %d\n", x, y, (long)u);
	s = 70000;
	printf("%d %d\n", s == 4464, s + 0L);
	self->byte = -1;
	this->c = 200;
	elements[3] = 40000;
	self->of_thread["k"] = 0x1ff;
	wide[1] = -1;
	printf("%d %d %d %d %d\n", self->byte + 0L, this->c + 0L, elements[3] + 0L,
	    self->of_thread["k"] + 0L, wide[1] + 0L);
	shade = 7;
	printf("%d\n", shade + 0L);
	exit(0);
}
END
{
	/* The value of the assignment is the one assigned, not the one stored. */
	printf("%d %d\n", (x = 65537) + 0L, (self->byte = 256L) + 0L);
	x = 65535;
	printf("%d %d %d\n", x++ + 0L, x + 0L, --x + 0L);
	x += 10;
	elements[3] *= 3;
	y <<= 31;
	printf("%d %d %d\n", x + 0L, elements[3] + 0L, y + 0L);
	/* timestamp - last is right this way. */
	last = 0x200000001;
	printf("%x\n", 0x500000005 - last);
	last += 0x100000000;
	printf("%x\n", 0x500000005 - last);
	last++;
	printf("%x\n", last + 0L);
}
/* EXPECT
 * 4464 4464 4294967294
 * 1 4464
 * 255 -56 -25536 -1 4294967295
 * 7
 * 1 0
 * 65535 0 65535
 * 9 -11072 0
 * 300000004
 * 200000004
 * 2
 *
 */
