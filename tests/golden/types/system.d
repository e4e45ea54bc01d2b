/* NAME types of the system that scripts take for granted are known
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d %d\n", sizeof (boolean_t), sizeof (in6_addr_t), sizeof (struct sockaddr),
	    sizeof (struct sockaddr_in6));
	this->a = (struct sockaddr_in *)alloca(sizeof (struct sockaddr_in));
	this->a->sin_port = htons(80);
	printf("%d %d\n", ntohs(this->a->sin_port), B_TRUE);
	exit(0);
}
/* EXPECT
 * 4 16 16 28
 * 80 1
 *
 */
