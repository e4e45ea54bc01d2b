/* NAME link_ntop() takes the kernel's numbers of Ethernet and InfiniBand by name
 * OPTIONS -q
 */
BEGIN
{
	this->p = (uint8_t *)alloca(20);
	this->p[0] = 0xfe;
	this->p[5] = 9;
	printf("%d %d\n", ARPHRD_ETHER, ARPHRD_INFINIBAND);
	printf("%s\n", link_ntop(ARPHRD_ETHER, this->p));
	printf("%s\n", link_ntop(ARPHRD_INFINIBAND, this->p));
	exit(0);
}
/* EXPECT
 * 1 32
 * fe:00:00:00:00:09
 * fe:00:00:00:00:09:00:00:00:00:00:00:00:00:00:00:00:00:00:00
 *
 */
