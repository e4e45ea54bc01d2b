/* NAME pcap() takes a packet and a protocol
 * TAG D_PROTO_LEN
 */
BEGIN
{
	pcap(0);
}
