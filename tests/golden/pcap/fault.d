/* NAME without a guest there is no packet
 * OPTIONS -q
 */
#pragma D option pcapsize=100

BEGIN
{
	pcap(4096, PCAP_IP);
}

BEGIN
{
	this->copy = copyoutmbuf(4096, 8);
	printf("not reached\n");
}

BEGIN
{
	exit(0);
}

ERROR
{
	printf("fault %d\n", arg4);
}
/* EXPECT
 * fault 3
 * fault 3
 *
 */
