/* NAME inet_ntop() prints an address of a family
 * OPTIONS -q
 */
BEGIN
{
	this->a = (uint32_t *)alloca(4);
	*this->a = 0x0200a8c0;
	printf("%s\n", inet_ntop(2, this->a));
	exit(0);
}
/* EXPECT
 * 192.168.0.2
 *
 */
