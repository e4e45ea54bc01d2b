/* NAME the protocol of pcap() is a number
 * TAG D_PCAP_PROTO
 */
BEGIN
{
	pcap(0, "ether");
}
