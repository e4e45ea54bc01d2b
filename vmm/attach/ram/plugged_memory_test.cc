#include "vmm/attach/ram/plugged_memory.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cstring>

namespace ringside::vmm {
namespace {

/// A process whose memory is these bytes, from 0 on.
class FakeProcess final : public CopiedBytes {
 public:
  bool read(std::span<const CopyPart> parts) const override {
    for (const CopyPart& part : parts) {
      if (part.offset + part.out.size() > bytes.size()) return false;
      std::memcpy(part.out.data(), bytes.data() + part.offset, part.out.size());
    }
    return true;
  }
  bool write(std::uint64_t offset, std::span<const std::byte> data) override {
    std::memcpy(bytes.data() + offset, data.data(), data.size());
    return true;
  }
  std::vector<ByteExtent> extents(ByteExtent of) const override { return {of}; }

  std::array<std::byte, 0x4000> bytes{};
};

class Plugged : public testing::Test {
 protected:
  bool missed() const {
    pollfd entry{memory_.event_fd(), POLLIN, 0};
    return poll(&entry, 1, 0) > 0;
  }
  bool read(std::uint64_t at, std::size_t size = 1) {
    std::array<std::byte, 16> out;
    const CopyPart part{at, std::span(out).first(size)};
    return memory_.read(std::span(&part, 1));
  }

  std::shared_ptr<FakeProcess> process_ = std::make_shared<FakeProcess>();
  PluggedMemory memory_{process_};
};

TEST_F(Plugged, IsWhereItIsPluggedInAndNowhereElse) {
  ASSERT_TRUE(memory_.set({{0x10000, 0x1000, 0x2000}, {0x12000, 0x1000, 0x1000}}));
  process_->bytes[0x1005] = std::byte{5};

  std::byte byte{};
  const CopyPart part{0x12005, std::span(&byte, 1)};
  EXPECT_TRUE(memory_.read(std::span(&part, 1)));
  EXPECT_EQ(byte, std::byte{5});
  EXPECT_TRUE(memory_.write(0x10001, std::span(&byte, 1)));
  EXPECT_EQ(process_->bytes[0x2001], std::byte{5});
  EXPECT_FALSE(read(0x11000));
  EXPECT_FALSE(read(0x10ff8, 16)) << "beyond its end";
  EXPECT_FALSE(memory_.write(0x9000, std::span(&byte, 1)));
}

TEST_F(Plugged, AsksForALookWhenSomebodyLooksInVain) {
  EXPECT_FALSE(missed());
  EXPECT_FALSE(read(0x10000));
  EXPECT_TRUE(missed());

  ASSERT_TRUE(memory_.set({{0x10000, 0x1000, 0x2000}}));

  EXPECT_FALSE(missed());
  EXPECT_TRUE(read(0x10000));
  EXPECT_FALSE(missed());
  ASSERT_TRUE(memory_.set({}));
  EXPECT_FALSE(read(0x10000)) << "plugged out again";
  EXPECT_TRUE(missed());
}

TEST_F(Plugged, KnowsWhichPartsMayHoldData) {
  ASSERT_TRUE(memory_.set({{0x10000, 0x1000, 0x2000}, {0x12000, 0x1000, 0x1000}}));

  const auto found = memory_.extents({0x10800, 0x10000});

  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].offset, 0x10800U);
  EXPECT_EQ(found[0].size, 0x800U);
  EXPECT_EQ(found[1].offset, 0x12000U);
}

TEST_F(Plugged, BoundsHowOftenItChanges) {
  unsigned changes = 0;
  while (changes < 1'000'000 && memory_.set({{0x1000 * (changes % 2), 0x1000, 0x2000}})) ++changes;

  EXPECT_LT(changes, 10'000U);
  EXPECT_FALSE(read(0)) << "what is not followed any more is not believed";
  EXPECT_FALSE(read(0x1000));
}

}  // namespace
}  // namespace ringside::vmm
