// A replayed firing knows all that its record holds, and no more.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "providers/testing/recording_guest.h"

namespace ringside::providers {
namespace {

using dif::ContextVariable;

/// Of a firing, what it can know.
struct Known {
  std::map<ContextVariable, std::optional<std::uint64_t>> variables;
  std::string execname;
  std::vector<std::optional<std::uint64_t>> arguments;
  bool kernel_memory = false, user_memory = false;
  std::optional<std::uint64_t> stack_pointer;

  bool operator==(const Known&) const = default;
};

Known known_of(const dif::GuestContext& guest) {
  Known known;
  const auto optional = [](const auto& result) {
    return result ? std::optional<std::uint64_t>(*result) : std::nullopt;
  };
  for (std::size_t n = 0; n < dif::kContextVariables; ++n) {
    const auto which = static_cast<ContextVariable>(n);
    known.variables[which] = optional(guest.variable(which));
  }
  std::array<char, 16> name{};
  known.execname = std::string(name.data(), guest.execname(name).value_or(0));
  for (unsigned n = 0; n < 10; ++n) known.arguments.push_back(optional(guest.argument(n)));
  known.kernel_memory = load<std::uint64_t>(guest.kernel(), kernel_address(kTask)).has_value();
  known.user_memory = load<std::uint64_t>(guest.user(), GuestVirt(kUserBase)).has_value();
  known.stack_pointer = optional(guest.machine_register(dif::RegisterSet::AtProbe, 7));
  return known;
}

TEST(ReplayedFiring, KnowsWhatTheRecordHolds) {
  RecordingGuest guest;
  std::vector<Known> known;
  guest.sink.during = [&](const dif::GuestContext& one) { known.push_back(known_of(one)); };
  guest.record(0, 42);

  guest.replay.drain();

  ASSERT_EQ(known.size(), 1u);
  Known& of = known[0];
  EXPECT_EQ(of.execname, "recorded");
  EXPECT_EQ(of.variables[ContextVariable::Curthread], kKernelBase + kTask);
  EXPECT_EQ(of.variables[ContextVariable::Pid], 200u);
  EXPECT_EQ(of.variables[ContextVariable::Tid], 201u);
  EXPECT_EQ(of.variables[ContextVariable::Born], 77'000u);
  EXPECT_EQ(of.arguments[0], 42u);
  EXPECT_EQ(of.arguments[5], 0u) << "in a register";
  EXPECT_EQ(guest.kernel.current_reads, 0u);
}

/// The current task's first words, and 8 bytes at arg0.
vmm::FetchList task_and_argument() {
  vmm::FetchList list;
  list.add({.source = vmm::FetchLoad::kTask, .words = 0x10});
  list.add({.source = vmm::FetchLoad::register_source(SHIM_RDI), .words = 1, .is_users = true});
  return list;
}

TEST(ReplayedFiring, SeesTheMemoryThatItsRecordHas) {
  RecordingGuest guest(kGigahertz, vmm::Reach::Mapped, task_and_argument());
  struct Seen {
    std::optional<std::uint64_t> task, behind, argument, other_half;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> seen;
  guest.sink.during = [&](const dif::GuestContext& one) {
    const auto word = [](const GuestReader& from, std::uint64_t at) {
      const auto found = load<std::uint64_t>(from, GuestVirt(at));
      return found ? std::optional(*found) : std::nullopt;
    };
    const std::uint64_t at = one.argument(0).value_or(0);
    seen.push_back({word(one.kernel(), kKernelBase + kTask + 8),
                    word(one.kernel(), kKernelBase + kTask + 0x800), word(one.user(), at),
                    word(one.kernel(), at)});
  };
  // More than a ring holds, so that each place in it is used again.
  const std::uint64_t count = 3 * guest.capacity();
  for (std::uint64_t n = 0; n < count; ++n) {
    auto runs = vmm::run_of(kKernelBase + kTask, {1, 100 + n, 3}, 0x10);
    const auto more = vmm::run_of(kUserBase + 8 * n, {200 + n}, 1);
    runs.insert(runs.end(), more.begin(), more.end());
    guest.record(n % 4 == 3 ? 2 : 0, kUserBase + 8 * n, host_tsc(), runs);
    if (n % 5 == 0) guest.replay.drain();
  }
  guest.replay.drain();

  ASSERT_EQ(seen.size(), count);
  for (std::uint64_t n = 0; n < count; ++n) {
    EXPECT_EQ(seen[n], (Seen{100 + n, std::nullopt, 200 + n, std::nullopt})) << n;
  }
}

TEST(ReplayedFiring, SeesNothingOfAnEarlierOnesMemory) {
  RecordingGuest guest(kGigahertz, vmm::Reach::Mapped, task_and_argument());
  std::vector<bool> seen;
  guest.sink.during = [&](const dif::GuestContext& one) {
    seen.push_back(load<std::uint64_t>(one.kernel(), kernel_address(kTask)).has_value());
  };
  const auto with = vmm::run_of(kKernelBase + kTask, {1}, 0x10);
  const auto without = vmm::run_of(kKernelBase + kTask, {}, 0x10);
  guest.record(0, 0, host_tsc(), with);
  guest.record(0, 1, host_tsc(), without);
  guest.replay.drain();

  EXPECT_EQ(seen, (std::vector{true, false}));
}

TEST(ReplayedFiring, SeesNoMemory) {
  RecordingGuest guest;
  std::vector<Known> known;
  std::vector<FaultKind> faults;
  guest.sink.during = [&](const dif::GuestContext& one) {
    known.push_back(known_of(one));
    std::uint64_t word = 0;
    const auto bytes = std::as_writable_bytes(std::span(&word, 1));
    const auto read = one.kernel().read(kernel_address(kTask), bytes);
    faults.push_back(read ? FaultKind::Unknown : read.error().kind);
  };
  guest.record(0, 0);
  guest.replay.drain();
  guest.replay.on_trap(RecordingGuest::trap(0, 1));
  guest.record(0, 2);
  guest.replay.drain();

  ASSERT_EQ(known.size(), 3u);
  for (const std::size_t replayed : {0u, 2u}) {
    Known& of = known[replayed];
    EXPECT_EQ(faults[replayed], FaultKind::BadAddress);
    EXPECT_FALSE(of.kernel_memory || of.user_memory);
    EXPECT_FALSE(of.arguments[6]) << "on the stack";
    for (const auto which : {ContextVariable::Ppid, ContextVariable::Uid, ContextVariable::Gid}) {
      EXPECT_FALSE(of.variables[which]);
    }
  }
  EXPECT_TRUE(known[1].kernel_memory && known[1].user_memory) << "this one waits";
  EXPECT_TRUE(known[1].arguments[6]);
  EXPECT_EQ(known[1].variables[ContextVariable::Uid], 1000u);
  EXPECT_EQ(known[1].execname, "workload") << "it brought no task";
}

TEST(ReplayedFiring, IsTheSameWhateverTheMemoryHoldsByThen) {
  std::vector<Known> known;
  for (const bool changed : {false, true}) {
    RecordingGuest guest;
    guest.sink.during = [&](const dif::GuestContext& one) { known.push_back(known_of(one)); };
    guest.record(0, 1);
    if (changed) {
      const std::vector<std::byte> other(0x20000, std::byte{0x41});
      guest.memory.put(kTask, other.data(), other.size());
      guest.memory.put(kStack, other.data(), 0x1000);
    }
    guest.replay.drain();
  }

  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[0].variables, known[1].variables);
  EXPECT_TRUE(known[0] == known[1]);
}

}  // namespace
}  // namespace ringside::providers
