#!/usr/bin/env -S ringside -s
/*
 * drops.d - IP packets that the kernel drops: where, why, and each packet.
 *
 * USAGE: ringside --attach TARGET -x pcapfile=FILE -s drops.d
 *
 * FILE gets the packets, for Wireshark and tshark; without it they are
 * printed as bytes. The process is the one that ran, which may have nothing to
 * do with the packet. Kernels tell reasons since 5.17.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("Tracing... Hit Ctrl-C to end.\n");
}

sdt:skb::kfree_skb
/args[0]->protocol == htons(0x0800) || args[0]->protocol == htons(0x86dd)/
{
	printf("%-6d %-16s %6d bytes at %a: ", pid, execname, args[0]->len,
	    (uintptr_t)args[1]);
	print(args[2]);
	pcap(args[0], PCAP_ETHER);
}
