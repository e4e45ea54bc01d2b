#include "vmm/linux/processes/mapping_state.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/types/btf.h"

namespace ringside::guest_linux {
namespace {

constexpr GuestVirt kMm(0xffff'8880'0000'1000);
constexpr std::uint32_t kLock = 8, kPages = 16, kCodePages = 24, kMappings = 32, kChanges = 36;

TypeGraph types(bool has_lock, bool counts_changes) {
  fakes::BtfWriter btf;
  const auto word = btf.integer("long", 8, true);
  const auto half = btf.integer("int", 4, true);
  const auto atomic = btf.structure("atomic64_t", 8, {{"counter", word, 0}});
  const auto lock = btf.structure("rw_semaphore", 8, {{has_lock ? "count" : "rwbase", atomic, 0}});
  std::vector<fakes::BtfWriter::Field> members = {{"mmap_lock", lock, kLock * 8},
                                                   {"total_vm", word, kPages * 8},
                                                   {"exec_vm", word, kCodePages * 8},
                                                   {"map_count", half, kMappings * 8}};
  if (counts_changes) members.push_back({"mm_lock_seq", half, kChanges * 8});
  btf.structure("mm_struct", 40, members);
  TypeGraph made;
  EXPECT_TRUE(Btf::read(btf.blob(), nullptr, made));
  return made;
}

class Space final : public GuestReader {
 public:
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    const std::uint64_t offset = at.raw() - kMm.raw();
    if (offset >= bytes.size() || out.size() > bytes.size() - offset) {
      return tl::make_unexpected(Fault{FaultKind::BadAddress, 0, at.raw()});
    }
    std::memcpy(out.data(), bytes.data() + offset, out.size());
    return {};
  }
  template <class T>
  void put(std::uint32_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }

  std::vector<std::byte> bytes{40};
};

TEST(MappingStates, TellWhoeverChangesMappingsAndWhatWasChanged) {
  Space space;
  const auto states = MappingStates::from(types(true, true));
  ASSERT_TRUE(states);
  space.put<std::uint64_t>(kPages, 700);
  space.put<std::uint64_t>(kCodePages, 70);
  space.put<std::uint32_t>(kMappings, 30);
  space.put<std::uint32_t>(kChanges, 5);
  space.put<std::uint64_t>(kLock, 0x100);  // somebody reads
  EXPECT_EQ(states->read(space, kMm), (MappingState{false, 700, 70, 30, 5}));
  space.put<std::uint64_t>(kLock, 0x103);
  EXPECT_EQ(states->read(space, kMm), (MappingState{true, 700, 70, 30, 5}));
  EXPECT_FALSE(states->read(space, GuestVirt(0)));
}

TEST(MappingStates, OlderKernelsCountNoChangesAndRealTimeOnesHaveAnotherLock) {
  Space space;
  const auto states = MappingStates::from(types(true, false));
  ASSERT_TRUE(states);
  space.put<std::uint32_t>(kChanges, 5);
  EXPECT_EQ(states->read(space, kMm)->changes, 0u);
  EXPECT_FALSE(MappingStates::from(types(false, true)));
}

}  // namespace
}  // namespace ringside::guest_linux
