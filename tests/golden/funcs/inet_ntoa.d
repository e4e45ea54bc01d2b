/* NAME inet_ntoa() prints an IPv4 address
 * OPTIONS -q
 */
BEGIN
{
	this->a = (ipaddr_t *)alloca(sizeof (ipaddr_t));
	*this->a = htonl(0x7f000001);
	printf("%s\n", inet_ntoa(this->a));
	exit(0);
}
/* EXPECT
 * 127.0.0.1
 *
 */
