/* NAME addresses that carry one of IPv4 end in its dotted form
 * OPTIONS -q
 */
BEGIN
{
	this->p = (uint8_t *)alloca(16);
	printf("%s\n", inet_ntop(AF_INET6, this->p));
	this->p[15] = 1;
	printf("%s\n", inet_ntop(AF_INET6, this->p));
	this->p[15] = 4;
	printf("%s\n", inet_ntop(AF_INET6, this->p));
	this->p[12] = 1;
	this->p[13] = 2;
	this->p[14] = 3;
	printf("%s\n", inet_ntop(AF_INET6, this->p));
	this->p[10] = 0xff;
	this->p[11] = 0xff;
	printf("%s\n", inet_ntop(AF_INET6, this->p));
	exit(0);
}
/* EXPECT
 * ::
 * ::1
 * ::0.0.0.4
 * ::1.2.3.4
 * ::ffff:1.2.3.4
 *
 */
