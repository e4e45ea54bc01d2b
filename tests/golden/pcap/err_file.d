/* NAME a program cannot name the file of pcap(): it would write to the host without -w
 * TAG D_PRAGMA_OPTSET
 */
#pragma D option pcapfile=/tmp/packets

BEGIN
{
	exit(0);
}
