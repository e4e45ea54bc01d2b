/* NAME byte order of 16, 32 and 64 bits
 * OPTIONS -q
 */
BEGIN
{
	printf("%x %x %x\n", htons(0x1234), htonl(0x12345678), htonll(0x123456789abcdef0));
	printf("%x %x %x\n", ntohs(0x1234), ntohl(0x12345678), ntohll(0x123456789abcdef0));
	exit(0);
}
/* EXPECT
 * 3412 78563412 f0debc9a78563412
 * 3412 78563412 f0debc9a78563412
 *
 */
