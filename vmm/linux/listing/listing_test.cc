// Lists of hostile guests: links that lead nowhere, back, or on for ever, and texts without end.
#include "vmm/linux/listing/listing.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "vmm/linux/health/fake_kernel_for_tests.h"
#include "vmm/linux/listing/file_list.h"
#include "vmm/linux/listing/module_list.h"
#include "vmm/linux/listing/paths.h"
#include "vmm/linux/listing/socket_list.h"
#include "vmm/linux/listing/task_list.h"

namespace ringside::guest_linux {
namespace {

using fakes::kData;
constexpr std::uint64_t kHeap = 0xffff'8880'0100'0000;
using Addresses = std::vector<std::uint64_t>;

class Lists : public testing::Test {
 protected:
  KernelView view() { return {kernel_, guest_}; }
  ListedGuest listed(const KernelView& view) {
    return {view, false, {}, [] {}};
  }

  void zero(std::uint64_t at, std::size_t size) {
    guest_.put_bytes(at, std::vector<std::byte>(size));
  }
  /// A circular list through these nodes, the first being its head.
  void ring(const Addresses& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      guest_.put(nodes[i], nodes[(i + 1) % nodes.size()]);
  }

  fakes::HealthKernel kernel_;
  fakes::SparseGuest guest_;
};

/// The nodes that a walk visits, and how it ends.
struct Walked {
  ListEnd end;
  Addresses nodes;
};

template <class Start>
Walked walked(const KernelView& view, ListEnd (Walk::*walk)(Start, const ListVisitor&), Start from,
              std::size_t most = 100) {
  Addresses nodes;
  Walk one(view, most);
  const ListEnd end = (one.*walk)(from, [&](GuestVirt node) {
    nodes.push_back(node.raw());
    return true;
  });
  return {end, nodes};
}

TEST_F(Lists, ACircularListIsFollowedToItsHead) {
  ring({kData, kHeap, kHeap + 0x100});

  const auto [end, nodes] = walked(view(), &Walk::circular, GuestVirt(kData));

  EXPECT_EQ(end, ListEnd::Whole);
  EXPECT_EQ(nodes, (Addresses{kHeap, kHeap + 0x100}));
}

TEST_F(Lists, AListThatLeadsBackIntoItselfShowsEachNodeOnce) {
  ring({kData, kHeap, kHeap + 0x100});
  guest_.put(kHeap + 0x100, kHeap);

  const auto [end, nodes] = walked(view(), &Walk::circular, GuestVirt(kData));

  EXPECT_EQ(end, ListEnd::Endless);
  EXPECT_EQ(nodes, (Addresses{kHeap, kHeap + 0x100}));
}

TEST_F(Lists, ALinkToNowhereEndsAWalk) {
  guest_.put(kData, kHeap);
  guest_.put(kHeap, std::uint64_t{0x1234});

  const auto [end, nodes] = walked(view(), &Walk::circular, GuestVirt(kData));

  EXPECT_EQ(end, ListEnd::Unreadable);
  EXPECT_EQ(nodes, (Addresses{kHeap, 0x1234}));
}

TEST_F(Lists, AWalkTakesNoMoreThanItsLimit) {
  ring({kData, kHeap, kHeap + 0x100, kHeap + 0x200});

  const auto [end, nodes] = walked(view(), &Walk::circular, GuestVirt(kData), 2);

  EXPECT_EQ(end, ListEnd::Endless);
  EXPECT_EQ(nodes, (Addresses{kHeap, kHeap + 0x100}));
}

TEST_F(Lists, AChainEndsInZeroOrInAnOddWord) {
  guest_.put(kHeap, kHeap + 0x100);
  guest_.put(kHeap + 0x100, std::uint64_t{0});
  guest_.put(kHeap + 0x200, std::uint64_t{0x35});

  EXPECT_EQ(walked(view(), &Walk::chain, std::uint64_t{kHeap}).end, ListEnd::Whole);
  EXPECT_EQ(walked(view(), &Walk::chain, std::uint64_t{kHeap}).nodes.size(), 2u);
  EXPECT_EQ(walked(view(), &Walk::chain, std::uint64_t{kHeap + 0x200}).end, ListEnd::Whole);
  EXPECT_EQ(walked(view(), &Walk::chain, std::uint64_t{3}).nodes.size(), 0u);
}

class Trees : public Lists {
 protected:
  Trees() {
    kernel_.structure("rb_node", 24,
                      {{"__rb_parent_color", "unsigned long", 0},
                       {"rb_right", "unsigned long", 8},
                       {"rb_left", "unsigned long", 16}});
    kernel_.seal();
  }
  static std::uint64_t node(std::uint64_t i) { return i == 0 ? 0 : kHeap + i * 0x100; }
  void put(std::uint64_t i, std::uint64_t left, std::uint64_t right) {
    guest_.put(node(i), std::uint64_t{0});
    guest_.put(node(i) + 8, node(right));
    guest_.put(node(i) + 16, node(left));
  }
};

TEST_F(Trees, ATreeIsWalkedInOrder) {
  guest_.put(kData, node(4));
  put(4, 2, 5), put(2, 1, 3), put(1, 0, 0), put(3, 0, 0), put(5, 0, 0);

  const auto [end, nodes] = walked(view(), &Walk::tree, GuestVirt(kData));

  EXPECT_EQ(end, ListEnd::Whole);
  EXPECT_EQ(nodes, (Addresses{node(1), node(2), node(3), node(4), node(5)}));
}

TEST_F(Trees, ATreeWhoseLeafLeadsBackToTheTopEnds) {
  guest_.put(kData, node(2));
  put(2, 1, 0), put(1, 0, 2);

  EXPECT_EQ(walked(view(), &Walk::tree, GuestVirt(kData)).end, ListEnd::Endless);
}

TEST_F(Lists, AKernelThatLacksAMemberIsToldByTheMembersName) {
  kernel_.structure("task_struct", 16, {{"pid", "int", 0}});
  kernel_.symbol("init_task", kData);
  kernel_.seal();
  const KernelView view = this->view();

  const auto tasks = list_tasks(listed(view), TaskDetail::Processes);

  ASSERT_FALSE(tasks.has_value());
  EXPECT_EQ(tasks.error().code, ErrorCode::Unsupported);
  EXPECT_EQ(tasks.error().message, "processes: this kernel has no task_struct.tasks");
}

/// Reads that fail, as of memory that a guest frees, a number of times.
TEST_F(Lists, AListThatDoesNotCloseIsReadAgainWhileTheGuestRuns) {
  const KernelView view = this->view();
  unsigned looks = 0;
  const auto read = [&]() -> Result<Listing<int>> {
    if (++looks < 3) return Listing<int>{{1}, {"cut"}};
    return Listing<int>{{1, 2}, {}};
  };

  const auto found = read_until_whole<int>({view, true, {}, [] {}}, read);

  EXPECT_EQ(found->rows.size(), 2u);
  EXPECT_EQ(looks, 3u);
  looks = 0;
  EXPECT_EQ(read_until_whole<int>({view, false, {}, [] {}}, read)->notes.size(), 1u);
  EXPECT_EQ(looks, 1u) << "a saved guest does not change";
}

/// Tasks of one thread each.
class TaskLists : public Lists {
 protected:
  TaskLists() {
    kernel_.structure("list_head", 16,
                      {{"next", "unsigned long", 0}, {"prev", "unsigned long", 8}});
    kernel_.structure("sched_entity", 8, {{"sum_exec_runtime", "unsigned long", 0}});
    kernel_.structure("kuid_t", 4, {{"val", "unsigned int", 0}});
    kernel_.structure("task_struct", 256,
                      {{"__state", "unsigned int", 0},
                       {"pid", "int", 4},
                       {"tgid", "int", 8},
                       {"exit_state", "int", 12},
                       {"comm", "char", 16, 16},
                       {"flags", "unsigned int", 32},
                       {"tasks", "list_head", 40},
                       {"signal", "unsigned long", 56},
                       {"thread_node", "list_head", 64},
                       {"se", "sched_entity", 80},
                       {"start_time", "unsigned long", 88},
                       {"mm", "unsigned long", 96},
                       {"real_cred", "unsigned long", 104},
                       {"real_parent", "unsigned long", 112},
                       {"cgroups", "unsigned long", 120},
                       {"files", "unsigned long", 128}});
    kernel_.structure("signal_struct", 32,
                      {{"thread_head", "list_head", 0}, {"nr_threads", "int", 16}});
    kernel_.structure("cred", 8, {{"euid", "kuid_t", 4}});
    kernel_.structure("atomic_long_t", 8, {{"counter", "long", 0}});
    kernel_.structure("mm_rss_stat", 32, {{"count", "atomic_long_t", 0, 4}});
    kernel_.structure("mm_struct", 128,
                      {{"pgd", "unsigned long", 0},
                       {"arg_start", "unsigned long", 8},
                       {"arg_end", "unsigned long", 16},
                       {"env_end", "unsigned long", 24},
                       {"rss_stat", "mm_rss_stat", 32}});
    kernel_.structure("css_set", 8, {{"dfl_cgrp", "unsigned long", 0}});
    kernel_.structure("cgroup", 8, {{"kn", "unsigned long", 0}});
    kernel_.structure("kernfs_node", 16,
                      {{"parent", "unsigned long", 0}, {"name", "unsigned long", 8}});
    kernel_.enumeration("mm_counters",
                        {{"MM_FILEPAGES", 0}, {"MM_ANONPAGES", 1}, {"MM_SHMEMPAGES", 3}});
    kernel_.symbol("init_task", kData);
    zero(kData, 256);
    put_links({0});
  }

  static std::uint64_t at(std::uint64_t i) { return i == 0 ? kData : kHeap + i * 0x1000; }
  void put_task(std::uint64_t i, std::string_view name) {
    zero(at(i), 0x800);
    guest_.put(at(i), std::uint32_t{1});
    guest_.put(at(i) + 4, static_cast<std::uint32_t>(i));
    guest_.put(at(i) + 8, static_cast<std::uint32_t>(i));
    guest_.put_bytes(at(i) + 16, std::as_bytes(std::span(name.data(), name.size())));
    guest_.put(at(i) + 56, at(i) + 0x200);
    guest_.put(at(i) + 0x200, at(i) + 64);
    guest_.put(at(i) + 64, at(i) + 0x200);
    guest_.put(at(i) + 104, at(i) + 0x300);
    guest_.put(at(i) + 0x304, std::uint32_t{1000});
    guest_.put(at(i) + 112, at(1));
  }
  void put_links(const Addresses& tasks) {
    Addresses nodes;
    for (const std::uint64_t task : tasks) nodes.push_back(at(task) + 40);
    ring(nodes);
  }
  /// Gives the task memory, with its command line at `begin`.
  void put_memory(std::uint64_t i, std::uint64_t begin, std::uint64_t end, std::uint64_t env_end) {
    const std::uint64_t mm = at(i) + 0x400;
    guest_.put(at(i) + 96, mm);
    const std::array<std::uint64_t, 4> words{0x1000, begin, end, env_end};
    guest_.put_bytes(mm, std::as_bytes(std::span(words)));
  }
  Listing<TaskRow> tasks(TaskDetail detail = TaskDetail::Processes) {
    const KernelView view = this->view();
    const ListedGuest guest{view, false,
                            [this](GuestVirt, GuestVirt at, std::span<std::byte> out) {
                              read_ += out.size();
                              return process_.read(at, out).has_value();
                            },
                            [] {}};
    auto found = list_tasks(guest, detail);
    EXPECT_TRUE(found.has_value()) << found.error().message;
    return found ? *found : Listing<TaskRow>{};
  }

  fakes::SparseGuest process_;  // memory of all processes
  std::size_t read_ = 0;        // bytes of it
};

TEST_F(TaskLists, AProcessIsAsTheKernelHasIt) {
  kernel_.seal();
  put_task(1, "init"), put_task(7, "web");
  put_links({0, 1, 7});
  guest_.put(at(7) + 80, std::uint64_t{5'000'000'000});
  put_memory(7, 0x5000, 0x5000 + 9, 0x6000);
  process_.put_bytes(0x5000, std::as_bytes(std::span("web\0--on\0", 9)));
  for (const std::uint64_t kind : {0, 1, 3})
    guest_.put(at(7) + 0x400 + 32 + kind * 8, std::uint64_t{10});

  const auto found = tasks();

  ASSERT_EQ(found.rows.size(), 2u);
  EXPECT_TRUE(found.notes.empty());
  const TaskRow& web = found.rows[1];
  EXPECT_EQ(web.process, 7);
  EXPECT_EQ(web.parent, 1);
  EXPECT_EQ(web.uid, 1000u);
  EXPECT_EQ(web.state, 'S');
  EXPECT_EQ(web.cpu_time, 5'000'000'000u);
  EXPECT_EQ(web.resident, 30u * 4096);
  EXPECT_EQ(web.name, "web");
  EXPECT_EQ(web.command, std::string("web\0--on", 8));
}

TEST_F(TaskLists, StatesAreTheLettersOfProc) {
  kernel_.seal();
  constexpr std::array<std::tuple<std::uint32_t, std::uint32_t, char>, 9> kStates{{{0, 0, 'R'},
                                                                                   {1, 0, 'S'},
                                                                                   {2, 0, 'D'},
                                                                                   {0x402, 0, 'I'},
                                                                                   {4, 0, 'T'},
                                                                                   {8, 0, 't'},
                                                                                   {0x40, 0, 'P'},
                                                                                   {0, 0x20, 'Z'},
                                                                                   {0, 0x10, 'X'}}};
  for (const auto& [state, exit_state, letter] : kStates) {
    put_task(1, "one");
    put_links({0, 1});
    guest_.put(at(1), state);
    guest_.put(at(1) + 12, exit_state);
    EXPECT_EQ(tasks().rows.at(0).state, letter);
  }
}

TEST_F(TaskLists, ProcessesWhoseListLeadsBackCountOnceAndTheListIsSaidToBeCut) {
  kernel_.seal();
  put_task(1, "one"), put_task(2, "two");
  put_links({0, 1, 2});
  guest_.put(at(2) + 40, at(1) + 40);

  const auto found = tasks();

  EXPECT_EQ(found.rows.size(), 2u);
  EXPECT_EQ(found.notes, std::vector<std::string>{"the list of processes is cut: it does not end"});
}

TEST_F(TaskLists, ThreadsThatLeadIntoAnotherProcessAreNotCountedTwice) {
  kernel_.seal();
  put_task(1, "one"), put_task(2, "two");
  put_links({0, 1, 2});
  guest_.put(at(1) + 64, at(2) + 64);  // and from there to the second one's head

  const auto found = tasks(TaskDetail::Threads);

  EXPECT_EQ(found.notes,
            std::vector<std::string>{"the list of threads of a process is cut: it does not end"});
  ASSERT_EQ(found.rows.size(), 2u);
  EXPECT_EQ(found.rows[1].name, "two");
}

TEST_F(TaskLists, ACommandLineThatIsNotInMemoryIsEmpty) {
  kernel_.seal();
  put_task(1, "one");
  put_links({0, 1});
  put_memory(1, 0x5000, 0x5010, 0);

  EXPECT_EQ(tasks().rows.at(0).command, "");
}

TEST_F(TaskLists, OfACommandLineWithoutEndABoundedPartIsRead) {
  kernel_.seal();
  put_task(1, "one");
  put_links({0, 1});
  put_memory(1, 0x5000, std::uint64_t{1} << 46, 0);
  process_.put_bytes(0x5000, std::vector<std::byte>(0x3000, std::byte{'a'}));

  EXPECT_EQ(tasks().rows.at(0).command.size(), 4096u);
  EXPECT_LE(read_, 2 * 4096u);
}

TEST_F(TaskLists, ATitleOverTheArgumentsGoesOnInTheEnvironment) {
  kernel_.seal();
  put_task(1, "one");
  put_links({0, 1});
  put_memory(1, 0x5000, 0x5004, 0x5020);
  process_.put_bytes(0x5000, std::vector<std::byte>(0x20));
  process_.put_text(0x5000, "one: title");

  EXPECT_EQ(tasks().rows.at(0).command, "one: title");
}

TEST_F(TaskLists, ControlGroupsThatAreTheirOwnParentsHaveABoundedPath) {
  kernel_.seal();
  put_task(1, "one");
  put_links({0, 1});
  const std::uint64_t set = kHeap, group = kHeap + 0x100, node = kHeap + 0x200;
  guest_.put(at(1) + 120, set);
  guest_.put(set, group);
  guest_.put(group, node);
  guest_.put(node, node);
  guest_.put(node + 8, kHeap + 0x300);
  zero(kHeap + 0x300, 64);
  guest_.put_text(kHeap + 0x300, "x");

  const auto path = tasks().rows.at(0).control_group;

  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(path->substr(0, 5), ".../x");
  EXPECT_EQ(path->size(), 3u + 2 * 64);
}

TEST_F(Lists, ModulesWithTheirUsersAndOneThatIsBeingMade) {
  kernel_.structure("list_head", 16, {{"next", "unsigned long", 0}, {"prev", "unsigned long", 8}});
  kernel_.structure("atomic_t", 4, {{"counter", "int", 0}});
  kernel_.structure("module_memory", 16,
                    {{"base", "unsigned long", 0}, {"size", "unsigned int", 8}});
  kernel_.structure("module", 256,
                    {{"state", "unsigned int", 0},
                     {"list", "list_head", 8},
                     {"name", "char", 24, 56},
                     {"mem", "module_memory", 80, 2},
                     {"refcnt", "atomic_t", 112},
                     {"source_list", "list_head", 120},
                     {"init", "unsigned long", 136},
                     {"exit", "unsigned long", 144}});
  kernel_.structure("module_use", 48,
                    {{"source_list", "list_head", 0}, {"source", "unsigned long", 32}});
  kernel_.enumeration("module_state", {{"MODULE_STATE_LIVE", 0},
                                       {"MODULE_STATE_COMING", 1},
                                       {"MODULE_STATE_GOING", 2},
                                       {"MODULE_STATE_UNFORMED", 3}});
  kernel_.symbol("modules", kData);
  kernel_.seal();
  const auto put = [&](std::uint64_t at, std::uint32_t state, std::string_view name) {
    zero(at, 256);
    guest_.put(at, state);
    guest_.put_text(at + 24, name);
    guest_.put(at + 88, std::uint32_t{0x1000});
    guest_.put(at + 104, std::uint32_t{0x234});
    guest_.put(at + 112, std::uint32_t{2});
    ring({at + 120});
  };
  const std::uint64_t loop = kHeap, user = kHeap + 0x1000, unformed = kHeap + 0x2000;
  put(loop, 0, "loop"), put(user, 1, "user"), put(unformed, 3, "no");
  ring({kData, loop + 8, user + 8, unformed + 8});
  const std::uint64_t use = kHeap + 0x3000;
  zero(use, 48);
  guest_.put(use + 32, user);
  ring({loop + 120, use});
  const KernelView view = this->view();

  const auto found = list_loaded_modules(listed(view));

  ASSERT_TRUE(found.has_value()) << found.error().message;
  ASSERT_EQ(found->rows.size(), 2u);
  EXPECT_EQ(found->rows[0].name, "loop");
  EXPECT_EQ(found->rows[0].size, 0x1234u);
  EXPECT_EQ(found->rows[0].references, 1);
  EXPECT_EQ(found->rows[0].used_by, std::vector<std::string>{"user"});
  EXPECT_EQ(found->rows[1].state, "loading");
}

/// A table of UDP sockets with one bucket, and one socket in it.
class Sockets : public Lists {
 protected:
  Sockets() {
    kernel_.structure("list_head", 16,
                      {{"next", "unsigned long", 0}, {"prev", "unsigned long", 8}});
    kernel_.structure("hlist_node", 16,
                      {{"next", "unsigned long", 0}, {"pprev", "unsigned long", 8}});
    kernel_.structure("hlist_head", 8, {{"first", "unsigned long", 0}});
    kernel_.structure("atomic_t", 4, {{"counter", "int", 0}});
    kernel_.structure("kuid_t", 4, {{"val", "unsigned int", 0}});
    kernel_.structure("sock_common", 64,
                      {{"skc_daddr", "unsigned int", 0},
                       {"skc_rcv_saddr", "unsigned int", 4},
                       {"skc_dport", "unsigned short", 8},
                       {"skc_num", "unsigned short", 10},
                       {"skc_family", "unsigned short", 12},
                       {"skc_state", "unsigned char", 14},
                       {"skc_node", "hlist_node", 16},
                       {"skc_nulls_node", "hlist_node", 16}});
    kernel_.structure("sock", 128,
                      {{"sk_protocol", "unsigned short", 64},
                       {"sk_type", "unsigned short", 66},
                       {"sk_uid", "kuid_t", 68},
                       {"sk_socket", "unsigned long", 72},
                       {"sk_rmem_alloc", "atomic_t", 80},
                       {"sk_wmem_alloc", "atomic_t", 84}});
    kernel_.structure("inode", 8, {{"i_ino", "unsigned long", 0}});
    kernel_.structure("socket_alloc", 24, {{"vfs_inode", "inode", 16}});
    kernel_.structure("net", 16, {{"list", "list_head", 0}});
    kernel_.structure("inet_hashinfo", 32,
                      {{"ehash", "unsigned long", 0},
                       {"ehash_mask", "unsigned int", 8},
                       {"lhash2_mask", "unsigned int", 12},
                       {"lhash2", "unsigned long", 16}});
    kernel_.structure("inet_ehash_bucket", 8, {{"chain", "hlist_head", 0}});
    kernel_.structure("inet_listen_hashbucket", 16, {{"nulls_head", "hlist_head", 8}});
    kernel_.structure("udp_hslot", 16, {{"head", "hlist_head", 0}});
    kernel_.structure("udp_table", 16, {{"hash", "unsigned long", 0}, {"mask", "unsigned int", 8}});
    kernel_.symbol("init_net", kData);
    kernel_.symbol("net_namespace_list", kNets);
    kernel_.symbol("tcp_hashinfo", kTcp);
    kernel_.symbol("udp_table", kUdp);
    kernel_.symbol("unix_socket_table", kUnix);
    kernel_.seal();
    ring({kNets});
    zero(kTcp, 32);
    guest_.put(kTcp, kBuckets);
    guest_.put(kTcp + 16, kBuckets);
    zero(kBuckets, 16);
    guest_.put(kUdp, kSlot);
    guest_.put(kUdp + 8, std::uint32_t{0});
    zero(kSlot, 16);
    zero(kUnix, 512 * 8);
    zero(kSocket, 128);
    guest_.put(kSocket + 4, std::uint32_t{0x0100'007f});
    guest_.put(kSocket + 8, std::uint16_t{0x3500});
    guest_.put(kSocket + 10, std::uint16_t{7});
    guest_.put(kSocket + 12, std::uint16_t{2});
    guest_.put(kSocket + 14, std::uint8_t{7});
    guest_.put(kSocket + 64, std::uint16_t{17});
    guest_.put(kSocket + 68, std::uint32_t{33});
    guest_.put(kSocket + 80, std::uint32_t{100});
    guest_.put(kSocket + 84, std::uint32_t{1});
    guest_.put(kSlot, kSocket + 16);
  }
  Listing<SocketRow> sockets() {
    const KernelView view = this->view();
    const auto found = list_sockets(listed(view));
    EXPECT_TRUE(found.has_value()) << found.error().message;
    return found ? *found : Listing<SocketRow>{};
  }
  static constexpr std::uint64_t kNets = kHeap, kTcp = kHeap + 0x100, kBuckets = kHeap + 0x200,
                                 kUdp = kHeap + 0x300, kSlot = kHeap + 0x400,
                                 kUnix = kHeap + 0x1000, kSocket = kHeap + 0x3000;
};

TEST_F(Sockets, ASocketIsAsTheKernelHasIt) {
  const auto found = sockets();

  EXPECT_TRUE(found.notes.empty());
  ASSERT_EQ(found.rows.size(), 1u);
  const SocketRow& udp = found.rows[0];
  EXPECT_EQ(udp.protocol, "udp");
  EXPECT_EQ(udp.state, "");
  EXPECT_EQ(udp.local.port, 7);
  EXPECT_EQ(udp.local.bytes[0], 127);
  EXPECT_EQ(udp.remote.port, 0x35);
  EXPECT_EQ(udp.receive_queue, 100u);
  EXPECT_EQ(udp.send_queue, 0u);
  EXPECT_EQ(udp.uid, 33u);
}

TEST_F(Sockets, AChainThatLeadsBackShowsASocketOnce) {
  guest_.put(kSocket + 16, kSocket + 16);

  const auto found = sockets();

  EXPECT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.notes,
            std::vector<std::string>{"the table of UDP sockets is cut: it does not end"});
}

TEST_F(Sockets, ATableOfMoreBucketsThanThereAreIsNotRead) {
  guest_.put(kTcp + 8, std::uint32_t{0xffff'ffff});
  guest_.put(kUdp + 8, std::uint32_t{0xff'ffff});

  const auto found = sockets();

  EXPECT_TRUE(found.rows.empty());
  EXPECT_EQ(found.notes,
            (std::vector<std::string>{"the table of TCP sockets is cut: a link leads nowhere",
                                      "the table of UDP sockets is cut: a link leads nowhere"}));
}

/// Dentries and mounts.
class PathsOf : public Lists {
 protected:
  PathsOf() {
    kernel_.structure("qstr", 16, {{"len", "unsigned int", 4}, {"name", "unsigned long", 8}});
    kernel_.structure("hlist_bl_node", 16,
                      {{"next", "unsigned long", 0}, {"pprev", "unsigned long", 8}});
    kernel_.structure("dentry", 64,
                      {{"d_hash", "hlist_bl_node", 0},
                       {"d_parent", "unsigned long", 16},
                       {"d_name", "qstr", 24}});
    kernel_.structure("vfsmount", 16, {{"mnt_root", "unsigned long", 0}});
    kernel_.structure("mount", 64,
                      {{"mnt_parent", "unsigned long", 0},
                       {"mnt_mountpoint", "unsigned long", 8},
                       {"mnt", "vfsmount", 16}});
    kernel_.seal();
  }
  void put_dentry(std::uint64_t at, std::uint64_t parent, std::string_view name) {
    zero(at, 64);
    guest_.put(at + 8, std::uint64_t{1});
    guest_.put(at + 16, parent);
    guest_.put(at + 28, static_cast<std::uint32_t>(name.size()));
    guest_.put(at + 32, at + 0x80);
    guest_.put_text(at + 0x80, name);
  }
  void put_mount(std::uint64_t at, std::uint64_t parent, std::uint64_t point, std::uint64_t root) {
    zero(at, 64);
    guest_.put(at, parent);
    guest_.put(at + 8, point);
    guest_.put(at + 16, root);
  }
  std::optional<std::string> path(std::uint64_t mount, std::uint64_t dentry) {
    const KernelView view = this->view();
    Wanted wanted(view);
    const Paths paths(wanted);
    EXPECT_TRUE(wanted.check("paths").has_value());
    return paths.path({GuestVirt(mount + 16), GuestVirt(dentry)});
  }
  static constexpr std::uint64_t kRoot = kHeap, kTmp = kHeap + 0x1000, kDisk = kHeap + 0x2000,
                                 kFile = kHeap + 0x3000, kRootMount = kHeap + 0x4000,
                                 kDiskMount = kHeap + 0x5000;
};

TEST_F(PathsOf, APathGoesUpThroughMounts) {
  put_dentry(kRoot, kRoot, "/"), put_dentry(kTmp, kRoot, "tmp");
  put_dentry(kDisk, kDisk, "/"), put_dentry(kFile, kDisk, "file");
  put_mount(kRootMount, kRootMount, kRoot, kRoot), put_mount(kDiskMount, kRootMount, kTmp, kDisk);

  EXPECT_EQ(path(kDiskMount, kFile), "/tmp/file");
  EXPECT_EQ(path(kDiskMount, kDisk), "/tmp");
  EXPECT_EQ(path(kRootMount, kRoot), "/");
  guest_.put(kFile + 8, std::uint64_t{0});
  EXPECT_EQ(path(kDiskMount, kFile), "/tmp/file (deleted)");
}

TEST_F(PathsOf, FoldersInEachOtherEnd) {
  put_dentry(kTmp, kDisk, "a"), put_dentry(kDisk, kTmp, "b");
  put_mount(kRootMount, kRootMount, kRoot, kRoot);

  EXPECT_FALSE(path(kRootMount, kTmp).has_value());
}

TEST_F(PathsOf, MountsInEachOtherEnd) {
  put_dentry(kRoot, kRoot, "/");
  put_mount(kRootMount, kDiskMount, kRoot, kRoot), put_mount(kDiskMount, kRootMount, kRoot, kRoot);

  EXPECT_FALSE(path(kRootMount, kRoot).has_value());
}

TEST_F(PathsOf, ANameLongerThanNamesAreIsCut) {
  put_dentry(kRoot, kRoot, "/"), put_dentry(kTmp, kRoot, std::string(300, 'x'));
  put_mount(kRootMount, kRootMount, kRoot, kRoot);
  guest_.put(kTmp + 28, std::uint32_t{0xffff'ffff});

  EXPECT_EQ(path(kRootMount, kTmp), "/" + std::string(255, 'x'));
}

}  // namespace
}  // namespace ringside::guest_linux
