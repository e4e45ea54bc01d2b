/* NAME inet_ntoa6() writes an IPv4 address that is inside alone
 * OPTIONS -q
 */
BEGIN
{
	this->p = (uint8_t *)alloca(16);
	printf("%s\n", inet_ntoa6((in6_addr_t *)this->p));
	this->p[15] = 1;
	printf("%s\n", inet_ntoa6((in6_addr_t *)this->p));
	this->p[12] = 127;
	printf("%s %s\n", inet_ntoa6((in6_addr_t *)this->p), inet_ntop(AF_INET6, this->p));
	this->p[10] = 0xff;
	this->p[11] = 0xff;
	printf("%s %s\n", inet_ntoa6((in6_addr_t *)this->p), inet_ntop(AF_INET6, this->p));
	this->p[0] = 0x20;
	printf("%s\n", inet_ntoa6((in6_addr_t *)this->p));
	exit(0);
}
/* EXPECT
 * ::
 * ::1
 * 127.0.0.1 ::127.0.0.1
 * 127.0.0.1 ::ffff:127.0.0.1
 * 2000::ffff:7f00:1
 *
 */
