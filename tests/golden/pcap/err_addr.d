/* NAME the packet of pcap() is an address
 * TAG D_PCAP_ADDR
 */
BEGIN
{
	pcap(execname, PCAP_IP);
}
