// slowlink: makes the loopback device as slow as a long line with a router in it. Used by the lab
// on TCP (docs/labs/tcp.md) and its test, before they send anything.
//
//   slowlink --rate KBIT/S --delay MS --queue PACKETS
//
// A packet arrives at the router after so many milliseconds (the kernel's netem). The router passes
// packets on at that rate (tbf), and keeps as many full ones as its queue holds; what finds the
// queue full is lost, and nobody is told. Both directions share the queue. Packets have at most
// 1500 bytes, and one segment each, as on Ethernet. It loads the modules in /modules/netem first.
// Does not: undo anything.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "program.h"

enum { kEthernet = 1500, kFrame = kEthernet + 14, kRequestSize = 512 };
// Of the two queues' names, as tc(8) writes them 1: and 1:1, where the second hangs below the
// first.
enum { kNetem = 0x10000, kBelowNetem = 0x10001 };

// A request of rtnetlink, built piece by piece; it is always large enough for ours.
struct Request {
  struct nlmsghdr head;
  char body[kRequestSize];
};

static void load_module(const char* name) {
  char path[128] = "/modules/";
  strncat(path, name, 100);
  const int file = open(path, O_RDONLY);
  if (file < 0) fail(path);
  if (syscall(SYS_finit_module, file, "", 0) != 0 && errno != EEXIST) fail(path);
  close(file);
}

static void load_netem(void) {
  char names[1024];
  const int file = open("/modules/netem", O_RDONLY);
  const ssize_t size = file < 0 ? -1 : read(file, names, sizeof names - 1);
  if (size < 0) fail("/modules/netem");
  names[size] = '\0';
  for (char* name = strtok(names, "\n"); name; name = strtok(NULL, "\n")) load_module(name);
  close(file);
}

static void* append(struct Request* request, const void* data, size_t size) {
  char* at = (char*)request + NLMSG_ALIGN(request->head.nlmsg_len);
  if (size) memcpy(at, data, size);
  request->head.nlmsg_len = NLMSG_ALIGN(request->head.nlmsg_len) + (uint32_t)size;
  return at;
}

static struct rtattr* append_attribute(struct Request* request, int type, const void* data,
                                       size_t size) {
  const struct rtattr head = {.rta_type = (unsigned short)type,
                              .rta_len = (unsigned short)RTA_LENGTH(size)};
  struct rtattr* attribute = append(request, &head, sizeof head);
  append(request, data, size);
  return attribute;
}

static struct Request new_request(int type, int flags) {
  return (struct Request){.head = {.nlmsg_len = NLMSG_HDRLEN,
                                   .nlmsg_type = (uint16_t)type,
                                   .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags)}};
}

static void ask_kernel(const struct Request* request, const char* what) {
  struct {
    struct nlmsghdr head;
    struct nlmsgerr error;
    char rest[1024];
  } answer;
  const int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  if (netlink < 0 || send(netlink, request, request->head.nlmsg_len, 0) < 0) fail("rtnetlink");
  if (recv(netlink, &answer, sizeof answer, 0) < (ssize_t)NLMSG_LENGTH(sizeof answer.error)) {
    fail("rtnetlink");
  }
  errno = -answer.error.error;
  if (errno) fail(what);
  close(netlink);
}

// Segments travel alone, or the queue would count 64 KiB as one packet.
static void make_packets_small(int device) {
  struct Request request = new_request(RTM_NEWLINK, 0);
  const struct ifinfomsg link = {.ifi_family = AF_UNSPEC, .ifi_index = device};
  const uint32_t mtu = kEthernet, one = 1;
  append(&request, &link, sizeof link);
  append_attribute(&request, IFLA_MTU, &mtu, sizeof mtu);
  append_attribute(&request, IFLA_GSO_MAX_SEGS, &one, sizeof one);
  ask_kernel(&request, "packets of one segment");
}

// The beginning of a request for a queue; `end_options` ends it.
static struct Request new_queue(int device, uint32_t parent, uint32_t handle, const char* kind) {
  struct Request request = new_request(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE);
  const struct tcmsg queue = {
      .tcm_family = AF_UNSPEC, .tcm_ifindex = device, .tcm_parent = parent, .tcm_handle = handle};
  append(&request, &queue, sizeof queue);
  append_attribute(&request, TCA_KIND, kind, strlen(kind) + 1);
  return request;
}

static void end_options(struct Request* request, struct rtattr* options) {
  options->rta_len = (unsigned short)((char*)request + request->head.nlmsg_len - (char*)options);
}

static void delay_packets(int device, uint32_t ms) {
  struct Request request = new_queue(device, TC_H_ROOT, kNetem, "netem");
  const struct tc_netem_qopt netem = {.limit = 100000};
  const int64_t delay_ns = (int64_t)ms * 1000000;
  struct rtattr* options = append_attribute(&request, TCA_OPTIONS, &netem, sizeof netem);
  append_attribute(&request, TCA_NETEM_LATENCY64, &delay_ns, sizeof delay_ns);
  end_options(&request, options);
  ask_kernel(&request, "netem");
}

// Below netem, since a packet that is lost at the root of a device is no loss for TCP: the kernel
// tells it.
static void queue_packets(int device, uint32_t kbits, uint32_t packets) {
  struct Request request = new_queue(device, kBelowNetem, 0, "tbf");
  const struct tc_tbf_qopt tbf = {.rate.rate = (uint32_t)((uint64_t)kbits * 1000 / 8),
                                  .limit = packets * kFrame};
  const uint32_t burst = 4 * kFrame;  // a timer that is late does not make the line slower
  struct rtattr* options = append_attribute(&request, TCA_OPTIONS, NULL, 0);
  append_attribute(&request, TCA_TBF_PARMS, &tbf, sizeof tbf);
  append_attribute(&request, TCA_TBF_BURST, &burst, sizeof burst);
  end_options(&request, options);
  ask_kernel(&request, "tbf");
}

static _Noreturn void usage(void) {
  static const char kText[] = "usage: slowlink --rate KBIT/S --delay MS --queue PACKETS\n";
  if (write(2, kText, sizeof kText - 1) < 0) _exit(1);
  _exit(2);
}

int main(int argc, char** argv) {
  uint32_t values[3] = {0};
  static const char* const kNames[] = {"--rate", "--delay", "--queue"};
  if (argc != 7) usage();
  for (int i = 1; i < argc; i += 2) {
    int which = 0;
    while (which < 3 && strcmp(argv[i], kNames[which]) != 0) which++;
    char* end = NULL;
    const uint64_t value = strtoull(argv[i + 1], &end, 10);
    if (which == 3 || *end != '\0' || value == 0 || value > 1000000) usage();
    values[which] = (uint32_t)value;
  }
  const int device = (int)if_nametoindex("lo");
  if (!values[0] || !values[1] || !values[2]) usage();
  if (!device) fail("lo");
  load_netem();
  make_packets_small(device);
  delay_packets(device, values[1]);
  queue_packets(device, values[0], values[2]);
  _exit(0);
}
