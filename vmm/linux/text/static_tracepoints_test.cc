#include "vmm/linux/text/static_tracepoints.h"

#include <gtest/gtest.h>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/inert_kernel_for_tests.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kTracepointTable = 0xffff'ffff'8200'0000;  // __start___tracepoints_ptrs
constexpr std::uint64_t kFirst = 0xffff'ffff'8300'0000;            // struct tracepoint
constexpr std::uint64_t kNames = 0xffff'ffff'8400'0000;
constexpr std::uint64_t kEvents = 0xffff'ffff'8500'0000;  // ftrace_events
constexpr std::uint64_t kTracepointStride = 0x100;

class TracedKernel final : public InertKernel {
 public:
  TypeGraph& own_types() { return types_; }
  void name(std::initializer_list<std::pair<std::uint64_t, const char*>> names) {
    std::vector<Symbol> symbols;
    for (const auto& [at, text] : names) symbols.push_back({GuestVirt(at), 0, text, 'd', 0});
    symbols_.add_module({"vmlinux", GuestVirt(0xffff'ffff'8100'0000), 0x1000, 0}, symbols);
    symbols_.seal();
  }
};

/// Two tracepoints, of which the first is an event of the group "sched".
class StaticTracepoints : public testing::Test {
 protected:
  StaticTracepoints() {
    kernel_.name({{kTracepointTable, "__start___tracepoints_ptrs"},
                  {kTracepointTable + 8, "__stop___tracepoints_ptrs"},
                  {kEvents, "ftrace_events"}});
    add_types();
    put_tracepoint(0, "sched_switch", 0);
    put_tracepoint(1, "sys_enter", 0xffff'ffff'8100'0040);
    put_event(0x100, 0, kEvents);
    guest_.put(kEvents, kEvents + 0x100);
    guest_.put_text(kNames + 0x800, "sched");
    guest_.put(kEvents + 0x800, kNames + 0x800);  // the class's system
  }

  void add_types() {
    auto& types = kernel_.own_types();
    const TypeId word = *types.find("unsigned long");
    const TypeId number = *types.find("unsigned int");
    const auto add = [&](std::string_view name, std::uint64_t size, std::vector<Member> members) {
      types.index(types.add_struct(TypeKind::Struct, name, size, members));
    };
    add("tracepoint", 64,
        {{"name", word, 0},
         {"key", word, 64},
         {"static_call_key", word, 128},
         {"regfunc", word, 192},
         {"funcs", word, 256}});
    add("trace_event_class", 8, {{"system", word, 0}});
    add("trace_event_call", 40,
        {{"list", word, 0}, {"class", word, 64}, {"tp", word, 128}, {"flags", number, 192}});
    const std::vector<Enumerator> flags{{"TRACE_EVENT_FL_TRACEPOINT", 16}};
    types.index(types.add_enum("", 4, false, flags));
  }
  void put_tracepoint(std::uint64_t n, const char* name, std::uint64_t registration) {
    const std::uint64_t at = kFirst + n * kTracepointStride, place = kTracepointTable + n * 4;
    guest_.put(place, static_cast<std::int32_t>(at - place));
    guest_.put(at, kNames + n * kTracepointStride);
    guest_.put(at + 16, 0x1000 + n);
    guest_.put(at + 24, registration);
    guest_.put_bytes(kNames + n * kTracepointStride, std::vector<std::byte>(0x80));
    guest_.put_text(kNames + n * kTracepointStride, name);
  }
  void put_event(std::uint64_t offset, std::uint64_t tracepoint, std::uint64_t next) {
    const std::uint64_t at = kEvents + offset;
    guest_.put(at, next);
    guest_.put(at + 8, kEvents + 0x800);
    guest_.put(at + 16, kFirst + tracepoint * kTracepointStride);
    guest_.put(at + 24, std::uint32_t{16});
  }
  std::vector<StaticTracepoint> read() {
    auto found = read_static_tracepoints(guest_, kernel_);
    EXPECT_TRUE(found);
    return found.value_or(std::vector<StaticTracepoint>());
  }

  fakes::SparseGuest guest_;
  TracedKernel kernel_;
};

TEST_F(StaticTracepoints, AreReadWithTheirKeysAndGroups) {
  const auto found = read();

  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "sched_switch");
  EXPECT_EQ(found[0].group, "sched");
  EXPECT_EQ(found[0].key, GuestVirt(kFirst + 8));
  EXPECT_EQ(found[0].call_key, GuestVirt(0x1000));
  EXPECT_EQ(found[0].functions, GuestVirt(kFirst + 32));
  EXPECT_FALSE(found[0].has_registration);
  EXPECT_EQ(found[1].group, "vmlinux") << "it is no event";
  EXPECT_TRUE(found[1].has_registration);
}

TEST_F(StaticTracepoints, ARingOfEventsThatDoesNotCloseEnds) {
  put_event(0x100, 0, kEvents + 0x100);

  EXPECT_EQ(read().size(), 2u);
}

TEST_F(StaticTracepoints, WhatHasNoNameOrIsNotMappedIsLeftOut) {
  guest_.put(kNames, '\x1b');
  guest_.put(kTracepointTable + 4, std::int32_t{0x7000'0000});

  EXPECT_TRUE(read().empty());
}

TEST_F(StaticTracepoints, TheSameOneTwiceIsOne) {
  guest_.put(kTracepointTable + 4, static_cast<std::int32_t>(kFirst - (kTracepointTable + 4)));

  EXPECT_EQ(read().size(), 1u);
}

TEST_F(StaticTracepoints, AKernelWhoseTypesDoNotDescribeThemIsToldInALine) {
  TracedKernel kernel;
  kernel.name({{kTracepointTable, "__start___tracepoints_ptrs"},
               {kTracepointTable + 8, "__stop___tracepoints_ptrs"}});

  const auto refused = read_static_tracepoints(guest_, kernel);

  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("struct tracepoint"), std::string::npos);
}

TEST_F(StaticTracepoints, AKernelWithoutAnyIsToldInALine) {
  TracedKernel kernel;
  kernel.name({{kEvents, "ftrace_events"}});

  const auto refused = read_static_tracepoints(guest_, kernel);

  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("CONFIG_TRACEPOINTS"), std::string::npos);
}

}  // namespace
}  // namespace ringside::guest_linux
