#include "vmm/shim/mailbox_copier.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "vmm/shim/shim.h"

namespace ringside::vmm {
namespace {

constexpr GuestPhys kShimPlace{0x21000}, kGate{0x10000}, kLookedAt{0x100000};
constexpr std::uint64_t kRegionBytes = 400 << 10, kRamBytes = 0x10000;
constexpr GuestVirt kShimBase{0xffffffff9f000000}, kLookText{0xffffffff81003000};

/// A guest's memory in another process, which tells how it is reached; offsets are physical.
class OthersBytes final : public CopiedBytes {
 public:
  [[nodiscard]] bool read(std::span<const CopyPart> parts) const override {
    if (!is_look_before_write(parts)) ++reads;
    most_parts = std::max(most_parts, parts.size());
    if (!is_look_before_write(parts)) last_parts = parts.size();
    if (parts.size() > 1) {
      ahead =
          std::ranges::count_if(parts, [](auto& part) { return part.offset >= kLookedAt.raw(); });
    }
    const std::vector<CopyPart> pieces = by_pages(parts);
    for (std::size_t n = 0; n < pieces.size(); ++n) {
      if (before_piece) before_piece(n, pieces.size());
      if (pieces[n].offset == absent) return false;
      if (pieces[n].offset + pieces[n].out.size() > bytes.size()) return false;
      copy(pieces[n]);
    }
    return true;
  }
  void copy(const CopyPart& piece) const {
    const std::size_t size = piece.out.size(), step = before_word ? 8 : size;
    // One word after the other, each once: the numbers of words have no divisor but 2 and 3 and 5.
    for (std::size_t done = 0; done < size; done += step) {
      const std::size_t words = size / step;
      const std::size_t at = (order == Order::Backwards ? words - 1 - done / step
                              : order == Order::Mixed   ? done / step * 7 % words
                                                        : done / step) *
                             step;
      if (before_word) before_word();
      std::memcpy(piece.out.data() + at, bytes.data() + piece.offset + at, step);
    }
  }
  static std::vector<CopyPart> by_pages(std::span<const CopyPart> parts) {
    std::vector<CopyPart> pieces;
    for (CopyPart part : parts) {
      while (!part.out.empty()) {
        const std::size_t on_page =
            std::min<std::size_t>(part.out.size(), SHIM_PAGE - part.offset % SHIM_PAGE);
        pieces.push_back({part.offset, part.out.first(on_page)});
        part = {part.offset + on_page, part.out.subspan(on_page)};
      }
    }
    return pieces;
  }
  [[nodiscard]] bool write(std::uint64_t offset, std::span<const std::byte> what) override {
    ++writes;
    if (offset + what.size() > bytes.size()) return false;
    std::memcpy(bytes.data() + offset, what.data(), what.size());
    return true;
  }
  std::vector<ByteExtent> extents(ByteExtent of) const override { return {of}; }

  /// Of a test that was put aside meanwhile.
  static bool is_look_before_write(std::span<const CopyPart> parts) {
    return parts.size() == 1 && parts[0].out.size() == 8 && parts[0].offset < kLookedAt.raw();
  }

  std::vector<std::byte> bytes = std::vector<std::byte>(kLookedAt.raw() + kRamBytes);
  std::function<void(std::size_t piece, std::size_t of)> before_piece;
  std::function<void()> before_word;
  enum class Order : std::uint8_t { Forwards, Backwards, Mixed };
  Order order = Order::Forwards;      // of the words that lie on one page
  std::uint64_t absent = UINT64_MAX;  // what begins there cannot be read
  mutable unsigned reads = 0, writes = 0;
  mutable std::size_t most_parts = 0, last_parts = 0;
  mutable std::ptrdiff_t ahead = 0;  // parts of the last look that firings read
};

struct Evaluation final : TrapSink {
  void on_trap(const Trap& trap) override {
    traps.push_back(trap);
    if (firing) firing();
  }
  std::vector<Trap> traps;
  std::function<void()> firing;
};

class CopiedTraps : public testing::Test {
 protected:
  CopiedTraps()
      : layout_(*layout_shim({kShimPlace, kRegionBytes})),
        others_(std::make_shared<OthersBytes>()),
        memory_(GuestMemory::by_copies({{kGate, 0x1000, others_, kGate.raw()},
                                        {kShimPlace, layout_.bytes, others_, kShimPlace.raw()},
                                        {kLookedAt, kRamBytes, others_, kLookedAt.raw()}})),
        shim_(memory_, layout_, kShimBase, 2, {.at = kGate, .bytes = {}, .ours = {}}) {
    EXPECT_TRUE(shim_.add_entry(kLookText, *shim_.allocate_slot(8)));
  }

  template <class T>
  T& at(GuestPhys where) {
    // SAFETY: aligned and inside, for every caller's address.
    return *reinterpret_cast<T*>(others_->bytes.data() + where.raw());
  }
  shim_head& head(unsigned i) {
    return at<shim_head>(kShimPlace.wrapping_add(layout_.data + SHIM_HEAD_AT(i)));
  }
  shim_box& box(unsigned i) {
    return at<shim_box>(kShimPlace.wrapping_add(layout_.data + SHIM_BOX_AT(i)));
  }
  std::uint64_t& word(std::uint64_t offset) {
    return at<std::uint64_t>(kLookedAt.wrapping_add(offset));
  }

  void raise(unsigned i = 0, std::uint64_t rdi = 0) {
    head(i).address = kLookText.raw();
    box(i).regs[SHIM_RDI] = rdi;
    box(i).seal = seal_of(head(i), box(i), next_claim(i));
    head(i).head = next_claim(i) + SHIM_RAISED;
  }
  std::uint64_t next_claim(unsigned i = 0) { return (head(i).head / SHIM_CLAIM + 1) * SHIM_CLAIM; }
  bool is_answered(unsigned i = 0) { return head(i).answered == head(i).head - SHIM_RAISED; }
  /// As a firing reads it.
  std::uint64_t read(std::uint64_t offset) {
    std::uint64_t value = 0;
    readable_ =
        memory_.read(kLookedAt.wrapping_add(offset), std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  /// A trap that reads these words; returns the calls that reading took in all.
  unsigned calls_of_trap(std::initializer_list<std::uint64_t> offsets) {
    evaluation_.firing = [this, offsets = std::vector(offsets)] {
      seen_.clear();
      for (const std::uint64_t offset : offsets) seen_.push_back(read(offset));
    };
    shim_.heartbeat();
    const unsigned before = others_->reads;
    raise();
    EXPECT_EQ(shim_.poll(handlers_), 1u);
    EXPECT_TRUE(is_answered());
    return others_->reads - before;
  }

  const ShimLayout layout_;
  std::shared_ptr<OthersBytes> others_;
  GuestMemory memory_;
  Shim shim_;
  Evaluation evaluation_;
  const TrapHandlers handlers_{evaluation_};
  std::vector<std::uint64_t> seen_;
  bool readable_ = false;
};

using Words = std::vector<std::uint64_t>;

TEST_F(CopiedTraps, InALoopTakeOneCallToReadAndOneToAnswer) {
  word(0x100) = 1;
  word(0x5008) = 2;
  EXPECT_EQ(calls_of_trap({0x100, 0x5008}), 4u) << "heads, all of the mailbox, two reads";

  for (std::uint64_t n = 0; n < 20; ++n) {
    word(0x100) = 10 + n;
    const unsigned writes = others_->writes;
    EXPECT_EQ(calls_of_trap({0x100, 0x5008}), 1u);
    EXPECT_EQ(others_->writes - writes, 2u) << "a heartbeat and the answer";
    EXPECT_EQ(seen_, (Words{10 + n, 2})) << "as it is now";
  }
}

/// A call copies part by part, and each costs as much as all else of a firing.
TEST_F(CopiedTraps, InALoopTakeOnePartForTheMailboxesAndOneForEachPlaceThatIsRead) {
  const auto fewest_parts = [&](std::initializer_list<std::uint64_t> offsets) {
    std::size_t fewest = 100;
    // Now and then a look is also at whether the shim is still there.
    for (unsigned n = 0; n < 200; ++n) {
      (void)calls_of_trap(offsets);
      if (n >= 10) fewest = std::min(fewest, others_->last_parts);
    }
    return fewest;
  };

  EXPECT_EQ(fewest_parts({}), 1u);
  EXPECT_EQ(fewest_parts({0x100, 0x5008}), 3u);
}

TEST_F(CopiedTraps, AreServedWithoutALookAtTheShimAfterAHeartbeat) {
  std::size_t fewest = 100;
  for (unsigned n = 0; n < 20; ++n) {
    std::this_thread::sleep_for(ShimPresence::kSeenFor);
    (void)calls_of_trap({});  // begins with one
    fewest = std::min(fewest, others_->last_parts);
  }
  EXPECT_EQ(fewest, 1u);

  std::this_thread::sleep_for(ShimPresence::kSeenFor);
  raise();
  EXPECT_EQ(shim_.poll(handlers_), 1u);

  EXPECT_EQ(others_->last_parts, 4u) << "control page, header and gate";
}

TEST_F(CopiedTraps, BringTheirTaskAlong) {
  box(0).task = 0xffff'8880'1234'0000;
  std::memcpy(box(0).comm, "workload", 9);
  box(0).pid = 7, box(0).tgid = 6;
  box(1).task = 0x7f00'1234'0000;  // no address of the kernel's
  for (unsigned n = 0; n < 3; ++n) {
    raise(0);
    raise(1);
    EXPECT_EQ(shim_.poll(handlers_), 2u);

    ASSERT_TRUE(evaluation_.traps[2 * n].task) << n;
    const TrappedTask& task = *evaluation_.traps[2 * n].task;
    EXPECT_EQ(task.address.raw(), 0xffff'8880'1234'0000u);
    EXPECT_STREQ(task.comm.data(), "workload");
    EXPECT_EQ(task.ids->pid, 7);
    EXPECT_EQ(task.ids->tgid, 6);
    EXPECT_FALSE(evaluation_.traps[2 * n + 1].task);
  }
}

TEST_F(CopiedTraps, OfOneLookAreAllServed) {
  (void)calls_of_trap({0x100});
  const unsigned before = others_->reads;
  raise(0, 70);
  raise(1, 71);

  EXPECT_EQ(shim_.poll(handlers_), 2u);

  EXPECT_EQ(others_->reads - before, 1u);
  EXPECT_TRUE(is_answered(0) && is_answered(1));
  EXPECT_EQ(evaluation_.traps[1].registers.rdi, 70u);
  EXPECT_EQ(evaluation_.traps[2].registers.rdi, 71u);
}

/// The host's kernel copies a page in whatever order its string instruction has.
TEST_F(CopiedTraps, ATrapThatBeginsWhileItsMailboxIsCopiedIsServedWhole) {
  constexpr std::size_t kWords = 2 * (SHIM_HEAD_SIZE + SHIM_BOX_SIZE) / 8;
  std::uint64_t claims = 0;
  for (std::size_t step = 0; step < 3 * kWords * kWords; ++step) {
    const std::size_t box_at = step / 3 % kWords, head_at = step / 3 / kWords;
    if (head_at < box_at) continue;  // the guest writes its head last
    (void)calls_of_trap({});
    others_->order = std::array{OthersBytes::Order::Forwards, OthersBytes::Order::Backwards,
                                OthersBytes::Order::Mixed}[step % 3];
    std::size_t word = 0;
    others_->before_word = [&] {
      if (word == box_at) {
        box(0).regs[SHIM_RDI] = ++claims;
        box(0).seal = seal_of(head(0), box(0), next_claim());
      }
      if (word++ == head_at) head(0).head = next_claim() + SHIM_RAISED;
    };
    const std::size_t before = evaluation_.traps.size();

    for (unsigned n = 0; n < 8 && evaluation_.traps.size() == before; ++n) {
      (void)shim_.poll(handlers_);
    }

    ASSERT_EQ(evaluation_.traps.size(), before + 1);
    ASSERT_EQ(evaluation_.traps.back().registers.rdi, claims) << box_at << ' ' << head_at;
    ASSERT_TRUE(is_answered());
    others_->before_word = nullptr;
  }
}

TEST_F(CopiedTraps, AGuestWhoseSealsAreWrongGetsOneCopyMoreForEach) {
  (void)calls_of_trap({});
  for (std::uint64_t n = 0; n < 10; ++n) {
    const unsigned before = others_->reads;
    raise(0, n);
    box(0).seal += n % 2 == 0 ? 1 : UINT64_MAX;

    EXPECT_EQ(shim_.poll(handlers_), 1u);

    EXPECT_EQ(others_->reads - before, 2u);
    EXPECT_EQ(evaluation_.traps.back().registers.rdi, n);
    EXPECT_TRUE(is_answered());
  }
}

TEST_F(CopiedTraps, WhatIsReadAheadIsCopiedBehindTheHeads) {
  (void)calls_of_trap({0x100});
  others_->before_piece = [&](std::size_t piece, std::size_t) {
    if (piece == 1) word(0x100) = 5;
  };

  (void)calls_of_trap({0x100});

  EXPECT_EQ(seen_, Words{5});
}

TEST_F(CopiedTraps, NoFiringSeesWhatWasCopiedForAnotherLook) {
  word(0x100) = 1;
  (void)calls_of_trap({0x100});
  (void)calls_of_trap({0x100});
  EXPECT_EQ(shim_.poll(handlers_), 0u) << "in vain; it has copied, too";
  word(0x100) = 2;

  (void)calls_of_trap({0x100});

  EXPECT_EQ(seen_, Words{2});
  word(0x100) = 3;
  EXPECT_EQ(read(0x100), 3u) << "outside of firings memory is read as it is";
}

TEST_F(CopiedTraps, WhatAFiringWritesItReadsBack) {
  (void)calls_of_trap({0x100, 0x108});
  evaluation_.firing = [&] {
    const std::uint64_t value = 9;
    EXPECT_EQ(read(0x100), 1u);
    EXPECT_TRUE(
        memory_.write(kLookedAt.wrapping_add(0x100), std::as_bytes(std::span(&value, 1)).first(4)));
    EXPECT_EQ(read(0x100), 9u);
    EXPECT_TRUE(memory_.store64(kLookedAt.wrapping_add(0x108), 8));
    EXPECT_EQ(read(0x108), 8u);
  };
  word(0x100) = 1;
  raise();

  EXPECT_EQ(shim_.poll(handlers_), 1u);
}

TEST_F(CopiedTraps, APlaceThatCanNoLongerBeReadFailsNoLook) {
  (void)calls_of_trap({0x100, 0x3000});
  others_->absent = kLookedAt.raw() + 0x100;

  (void)calls_of_trap({0x100});
  EXPECT_FALSE(readable_) << "the firing's own read";
  (void)calls_of_trap({0x100, 0x3000});
  EXPECT_TRUE(readable_);
  EXPECT_EQ(calls_of_trap({0x100, 0x3000}), 2u) << "it is not tried ahead again, the other one is";
  others_->absent = UINT64_MAX;
  (void)calls_of_trap({0x100});
  EXPECT_TRUE(readable_);
}

TEST_F(CopiedTraps, PlacesThatFiringsNoLongerReadAreNotReadAhead) {
  (void)calls_of_trap({0x100, 0x108, 0x3000, 0x5000});
  (void)calls_of_trap({});
  EXPECT_EQ(others_->ahead, 3) << "what lies together is one of them";

  for (unsigned n = 0; n < 4; ++n) (void)calls_of_trap({});  // two rounds of two mailboxes

  EXPECT_EQ(others_->ahead, 0);
}

TEST_F(CopiedTraps, AFiringThatReadsAllOverMemoryReadsItRight) {
  for (std::uint64_t n = 0; n < kRamBytes / 8; ++n) word(8 * n) = n;
  std::vector<std::byte> all(kRamBytes);
  evaluation_.firing = [&] {
    for (std::uint64_t n = 0; n < kRamBytes / 8; n += 7) ASSERT_EQ(read(8 * n), n);
    ASSERT_TRUE(memory_.read(kLookedAt, all));
    ASSERT_EQ(std::memcmp(all.data(), &word(0), all.size()), 0);
    EXPECT_FALSE(memory_.read(kLookedAt.wrapping_add(kRamBytes - 4), std::span(all).first(8)));
  };

  for (unsigned n = 0; n < 3; ++n) {
    raise();
    ASSERT_EQ(shim_.poll(handlers_), 1u);
  }

  EXPECT_LE(others_->most_parts, 2 + 3 + ReadAhead::kMostRanges);
}

/// A firing may read the shim's own words, and wait, whereupon the host beats the heart.
TEST_F(CopiedTraps, TheHostsOwnLooksAreNeverServedFromCopies) {
  const GuestPhys control = kShimPlace.wrapping_add(layout_.data);
  const auto heartbeat = [&] {
    return at<std::uint64_t>(control.wrapping_add(SHIM_CONTROL_HEARTBEAT));
  };
  evaluation_.firing = [&] {
    (void)memory_.load64(control.wrapping_add(SHIM_CONTROL_HEARTBEAT));
    const std::uint64_t before = heartbeat();
    shim_.heartbeat();
    shim_.heartbeat();
    EXPECT_EQ(heartbeat(), before + 2);
  };

  for (unsigned n = 0; n < 3; ++n) {
    raise();
    EXPECT_EQ(shim_.poll(handlers_), 1u);
  }

  EXPECT_EQ(shim_.state(), ShimState::There);
}

TEST_F(CopiedTraps, AMailboxWhoseShimMayHaveGivenUpIsCopiedWithALookBehind) {
  (void)calls_of_trap({});
  std::this_thread::sleep_for(std::chrono::milliseconds(110));  // without a heartbeat
  raise(0, 1);
  bool taken_back = false;
  others_->before_piece = [&](std::size_t piece, std::size_t of) {
    if (piece == 1 && of > 1 && !taken_back) {
      taken_back = true;
      raise(0, 2);  // its next trap
    }
  };

  (void)shim_.poll(handlers_);
  EXPECT_EQ(evaluation_.traps.size(), 1u) << "half of the one, half of the other";
  (void)shim_.poll(handlers_);

  ASSERT_EQ(evaluation_.traps.size(), 2u);
  EXPECT_EQ(evaluation_.traps.back().registers.rdi, 2u);
}

TEST_F(CopiedTraps, ARingIsAnsweredWithALookAtTheShimUnlessThatWasJustSeen) {
  std::this_thread::sleep_for(ShimPresence::kSeenFor);
  raise();
  shim_.answer(0, handlers_);
  EXPECT_TRUE(is_answered());
  EXPECT_EQ(others_->last_parts, 6u) << "the mailbox in three, and the shim in three";

  std::this_thread::sleep_for(ShimPresence::kSeenFor);
  at<std::uint64_t>(kShimPlace.wrapping_add(layout_.data + SHIM_CONTROL_LEFT)) = 1;
  raise();
  shim_.answer(0, handlers_);

  EXPECT_FALSE(is_answered());
  EXPECT_EQ(evaluation_.traps.size(), 1u);
  EXPECT_EQ(shim_.state(), ShimState::GuestLeft);
}

TEST_F(CopiedTraps, AShimThatCannotBeReadIsNotThere) {
  EXPECT_EQ(shim_.state(), ShimState::There);
  others_->absent = kGate.raw();

  EXPECT_EQ(shim_.state(), ShimState::Overwritten);
}

TEST_F(CopiedTraps, NothingIsAnsweredOnceTheGuestHasLeft) {
  (void)calls_of_trap({});
  at<std::uint64_t>(kShimPlace.wrapping_add(layout_.data + SHIM_CONTROL_LEFT)) = 1;
  std::this_thread::sleep_for(ShimPresence::kSeenFor);
  raise();

  EXPECT_EQ(shim_.poll(handlers_), 0u);

  EXPECT_FALSE(is_answered());
  EXPECT_EQ(shim_.state(), ShimState::GuestLeft);
}

TEST(CopyPace, WaitsForAGuestThatIsLateAndNoLongerThanThat) {
  CopyPace pace;
  EXPECT_EQ(pace.wait().count(), 0);
  pace.found();
  EXPECT_EQ(pace.wait().count(), 0);
  for (unsigned n = 0; n < 1000; ++n) pace.found_nothing();
  EXPECT_EQ(pace.wait(), CopyPace::kMost);
  for (unsigned n = 0; n < 1000; ++n) pace.found();
  EXPECT_EQ(pace.wait().count(), 0);
}

/// A guest that needs the same time again and again is found at once as a rule, and soon.
TEST(CopyPace, FindsTheTimeThatTheGuestNeeds) {
  constexpr CopyPace::Time kNeeds{1500};
  CopyPace pace;
  unsigned in_vain = 0;
  for (unsigned n = 0; n < 1000; ++n) {
    if (pace.wait() < kNeeds) {
      pace.found_nothing();
      if (n >= 100) ++in_vain;
    } else {
      pace.found();
    }
    if (n >= 100) {
      EXPECT_LE(pace.wait(), kNeeds + CopyPace::kLater);
    }
  }
  EXPECT_LT(in_vain, 150u);
}

}  // namespace
}  // namespace ringside::vmm
