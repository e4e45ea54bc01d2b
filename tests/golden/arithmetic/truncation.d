/* NAME assigning to a smaller type cuts the value
 * OPTIONS -q
 */
uint8_t small;
int16_t medium;
BEGIN
{
	small = 0x1ff;
	medium = 0x18000;
	printf("%d %d\n", small, medium);
	exit(0);
}
/* EXPECT
 * 255 -32768
 *
 */
