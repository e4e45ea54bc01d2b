/* NAME 4 and 8 bytes print with a sign, 1 and 2 bytes without, whatever the type
 * OPTIONS -q
 */
BEGIN
{
	trace((char)-1);
	trace(" ");
	trace((short)-2);
	trace(" ");
	trace((long long)-3);
	trace(" ");
	trace((uint8_t)-4);
	trace(" ");
	trace((uint16_t)-5);
	trace(" ");
	trace((uint32_t)-6);
	trace(" ");
	trace((uint64_t)-7);
	exit(0);
}
/* EXPECT
 * 255 65534 -3 252 65531 -6 -7
 */
