// Traps and their answers.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "vmm/shim/shim_channel_for_tests.h"

namespace ringside::vmm {
namespace {

using namespace shim_fakes;

INSTANTIATE_TEST_SUITE_P(Every, ShimChannel, kEveryReach, reach_name);

TEST_P(ShimChannel, ServesEveryRaisedMailboxOnceAndAnswers) {
  raise(0, kText, 7);
  raise(1, kText, 9);

  EXPECT_EQ(shim_.poll(handlers_), 2u);
  EXPECT_EQ(shim_.poll(handlers_), 0u);

  ASSERT_EQ(sink_.traps.size(), 2u);
  EXPECT_EQ(head(0).answered, 7 * SHIM_CLAIM);
  EXPECT_EQ(head(1).answered, 9 * SHIM_CLAIM);
  EXPECT_EQ(head(1).head, 9 * SHIM_CLAIM | SHIM_RAISED) << "the guest's own word";
  const Trap& trap = sink_.traps[1];
  EXPECT_EQ(trap.address, kText);
  EXPECT_EQ(trap.tsc, 1001u);
  EXPECT_EQ(trap.percpu_base.raw(), 0xffff888000000001);
  EXPECT_EQ(trap.registers.rip, kText.raw());
  EXPECT_EQ(trap.registers.rax, 100u);
  EXPECT_EQ(trap.registers.rdi, 107u);
  EXPECT_EQ(trap.registers.rsp, 104u);
  EXPECT_EQ(trap.registers.r15, 115u);
  EXPECT_EQ(trap.registers.cs, 0x10u);
  EXPECT_EQ(trap.registers.ss, 0x18u);
}

TEST_P(ShimChannel, AnswersTheMailboxThatRangAndNoOther) {
  raise(0, kText, 7);
  raise(1, kText, 9);

  shim_.answer(1, handlers_);
  shim_.answer(1, handlers_);

  ASSERT_EQ(sink_.traps.size(), 1u);
  EXPECT_EQ(sink_.traps[0].tsc, 1001u);
  EXPECT_EQ(head(0).answered, 0u);
  EXPECT_EQ(head(1).answered, 9 * SHIM_CLAIM);
}

TEST_P(ShimChannel, ATrapThatHasAWatchIsNotServedOnItsVcpusThread) {
  handlers_.add(kText, watch_);
  raise(1, kText, 9);

  shim_.answer(1, handlers_);

  EXPECT_TRUE(sink_.traps.empty());
  EXPECT_EQ(head(1).answered, 0u);
  EXPECT_TRUE(watch_.asked.empty());
  EXPECT_EQ(shim_.poll(handlers_), 1u);
  EXPECT_EQ(head(1).answered, 9 * SHIM_CLAIM);
}

TEST_P(ShimChannel, AWatchTakesTheTrapsOfItsAddressesAfterTheSink) {
  const GuestVirt watched = kText.wrapping_add(0x40), also_watched = kText.wrapping_sub(0x40);
  RecordingWatch second(sink_);
  handlers_.add(watched, watch_);
  handlers_.add(also_watched, second);
  handlers_.add(watched, second);
  for (const GuestVirt place : {watched, also_watched}) {
    ASSERT_TRUE(shim_.add_entry(place, slot_));
  }

  raise(0, kText);
  EXPECT_EQ(shim_.poll(handlers_), 1u);
  EXPECT_TRUE(watch_.asked.empty() && watch_.after.empty());
  raise(0, watched, 2);
  EXPECT_EQ(shim_.poll(handlers_), 1u);
  raise(0, also_watched, 3);
  EXPECT_EQ(shim_.poll(handlers_), 1u);

  using After = std::vector<std::pair<GuestVirt, std::size_t>>;
  EXPECT_EQ(sink_.traps.size(), 3u) << "a probe may stand there, too";
  EXPECT_EQ(watch_.after, (After{{watched, 2}}));
  EXPECT_EQ(second.after, (After{{watched, 2}, {also_watched, 3}}));
  EXPECT_EQ(head(0).answered, 3 * SHIM_CLAIM);
}

TEST_P(ShimChannel, NoWatchIsAskedOfAnAddressThatIsNoTrapPoint) {
  const GuestVirt unknown = kText.wrapping_add(0x40);
  handlers_.add(unknown, watch_);
  watch_.keeping = true;
  raise(0, unknown);

  EXPECT_EQ(shim_.poll(handlers_), 1u);

  EXPECT_TRUE(watch_.asked.empty() && watch_.after.empty() && sink_.traps.empty());
  EXPECT_EQ(shim_.counters().rejected, 1u);
}

TEST_P(ShimChannel, AKeptTrapIsAskedForAgainAndOthersAreServed) {
  handlers_.add(kText, watch_);
  watch_.keeping = true;
  const GuestVirt other = kText.wrapping_add(0x40);
  ASSERT_TRUE(shim_.add_entry(other, slot_));
  raise(0, kText, 3);
  raise(1, other, 4);

  shim_.poll(handlers_);
  shim_.poll(handlers_);

  ASSERT_EQ(sink_.traps.size(), 1u);
  EXPECT_EQ(sink_.traps[0].address, other);
  EXPECT_EQ(head(1).answered, 4 * SHIM_CLAIM);
  EXPECT_EQ(head(0).answered, 0u);
  ASSERT_EQ(watch_.asked.size(), 2u) << "of the one place only, at each poll";
  EXPECT_EQ(watch_.asked[1].tsc, watch_.asked[0].tsc);
  EXPECT_FALSE(shim_.quiescent());

  watch_.keeping = false;
  shim_.poll(handlers_);
  shim_.poll(handlers_);

  ASSERT_EQ(sink_.traps.size(), 2u);
  EXPECT_EQ(sink_.traps[1].address, kText);
  EXPECT_EQ(head(0).answered, 3 * SHIM_CLAIM);
}

TEST_P(ShimChannel, ARingForNothingDoesNothing) {
  head(3).head = SHIM_CLAIMED;
  for (const std::uint32_t lie : {0u, 3u, SHIM_MAILBOXES, SHIM_MAILBOXES + 1, UINT32_MAX}) {
    shim_.answer(lie, handlers_);
  }

  EXPECT_TRUE(sink_.traps.empty());
  EXPECT_EQ(head(3).head, std::uint64_t{SHIM_CLAIMED});
  EXPECT_EQ(head(3).answered, 0u);
  EXPECT_EQ(shim_.counters().rejected, 0u);
}

TEST_P(ShimChannel, TellsTheGuestWhereToRing) {
  EXPECT_EQ(control().doorbell, 0u);

  shim_.set_doorbell(0x5244);
  EXPECT_EQ(control().doorbell, 0x5244u);
  shim_.set_doorbell(0x5245);
  EXPECT_EQ(control().doorbell, 0x5245u);
  shim_.set_doorbell(0);
  EXPECT_EQ(control().doorbell, 0u);
}

TEST_P(ShimChannel, FindsANestedTrapInAMailboxThatWasNeverUsed) {
  raise(40, kText);

  unsigned served = 0;
  for (int i = 0; i < 64; ++i) served += shim_.poll(handlers_);
  EXPECT_EQ(served, 1u);

  raise(40, kText, 2);
  EXPECT_EQ(shim_.poll(handlers_), 1u) << "from now on it is looked at every time";
}

TEST_P(ShimChannel, AnswersButDoesNotFireWhatIsNoTrapPoint) {
  raise(0, GuestVirt(kText.raw() + 1));
  raise(1, GuestVirt(kText.raw() & 0xffffffff));  // the key alone is not the address

  EXPECT_EQ(shim_.poll(handlers_), 2u);

  EXPECT_TRUE(sink_.traps.empty());
  EXPECT_EQ(shim_.counters().rejected, 2u);
  EXPECT_TRUE(region_.is_answered(0));
}

TEST_P(ShimChannel, IgnoresStatesThatDoNotExist) {
  raise(0, kText);
  head(0).head = 0xff;

  EXPECT_EQ(shim_.poll(handlers_), 0u);
}

TEST_P(ShimChannel, DoesNotAnswerATrapThatReplacedTheOneItLookedAt) {
  raise(0, kText, 1);
  sink_.during = [this] { raise(0, kText, 2); };  // the guest gave up and trapped again

  shim_.poll(handlers_);

  EXPECT_EQ(head(0).answered, SHIM_CLAIM) << "not what the second one waits for";
  sink_.during = nullptr;
  EXPECT_EQ(shim_.poll(handlers_), 1u);
  EXPECT_TRUE(region_.is_answered(0));
}

TEST_P(ShimChannel, ServesAClaimOnceWhoeverFindsIt) {
  raise(0, kText);
  sink_.during = [this] {  // the vCPU's own thread and the poller, say
    shim_.answer(0, handlers_);
    shim_.poll(handlers_);
  };

  shim_.answer(0, handlers_);

  EXPECT_EQ(sink_.traps.size(), 1u);
  EXPECT_TRUE(region_.is_answered(0));
}

TEST_P(ShimChannel, AnAnswerThatComesLateReplacesNoLaterOne) {
  raise(0, kText, 1);
  sink_.during = [this] {  // meanwhile another thread has served the next one
    sink_.during = nullptr;
    raise(0, kText, 2);
    EXPECT_EQ(shim_.poll(handlers_), 1u);
  };

  shim_.answer(0, handlers_);

  EXPECT_EQ(head(0).answered, 2 * SHIM_CLAIM);
  raise(0, kText, 3);
  EXPECT_EQ(shim_.poll(handlers_), 1u);
  EXPECT_EQ(head(0).answered, 3 * SHIM_CLAIM);
}

TEST_P(ShimChannel, AGuestThatWritesTheHostsWordHurtsOneTrapOfItsOwn) {
  head(0).answered = 0x5a5a;
  raise(0, kText, 1);
  EXPECT_EQ(shim_.poll(handlers_), 1u);
  EXPECT_EQ(head(0).answered, 0x5a5au) << "nothing is written over what is not ours";

  raise(0, kText, 2);
  EXPECT_EQ(shim_.poll(handlers_), 1u);

  EXPECT_EQ(head(0).answered, 2 * SHIM_CLAIM);
}

/// A page that acts, once, when it is touched.
class PageThatActs {
 public:
  PageThatActs(std::byte* page, std::function<void()> act) : page_(page), act_(std::move(act)) {
    current = this;
    struct sigaction action {};
    action.sa_handler = [](int) { current->touched(); };
    sigaction(SIGSEGV, &action, &before_);
    mprotect(page_, kPage, PROT_NONE);
  }
  ~PageThatActs() { sigaction(SIGSEGV, &before_, nullptr); }
  PageThatActs(const PageThatActs&) = delete;
  PageThatActs& operator=(const PageThatActs&) = delete;

 private:
  static constexpr std::size_t kPage = 4096;
  static inline PageThatActs* current = nullptr;

  void touched() {
    mprotect(page_, kPage, PROT_READ | PROT_WRITE);
    act_();
  }

  std::byte* page_;
  std::function<void()> act_;
  struct sigaction before_ {};
};

TEST(ShimChannelCopy, FiresNoTrapWhoseMailboxChangesWhileItIsCopied) {
  FakeGuest guest;
  const ShimLayout layout = *layout_shim(kLow);
  constexpr unsigned kFar = SHIM_NEAR_MAILBOXES;  // with its head on one page, its box on the next
  static_assert(SHIM_BOX_AT(kFar) % SHIM_PAGE == 0);
  Shim shim(guest.memory(), layout, GuestVirt(0xffffffff9f000000), kFar + 1,
            {.at = GuestPhys(0x10000), .bytes = {}, .ours = {}});
  ASSERT_TRUE(shim.add_entry(kText, *shim.allocate_slot(8)));
  std::byte* data = guest.ram().data() + layout.place.raw() + layout.data;
  auto& head = *reinterpret_cast<shim_head*>(data + SHIM_HEAD_AT(kFar));
  auto& box = *reinterpret_cast<shim_box*>(data + SHIM_BOX_AT(kFar));
  Recorder sink;
  const TrapHandlers handlers(sink);
  head.address = kText.raw();
  head.head = 1 * SHIM_CLAIM | SHIM_RAISED;
  // Its registers are copied after its head.
  const PageThatActs guest_acts(data + SHIM_BOX_AT(kFar), [&] {
    // It timed out, and another trap came.
    head.head = 2 * SHIM_CLAIM | SHIM_RAISED;
    box.regs[SHIM_RDI] = 2;
  });

  shim.poll(handlers);

  EXPECT_TRUE(sink.traps.empty()) << "half of one trap and half of another";
  EXPECT_EQ(head.answered, 0u) << "not answered either";
  EXPECT_EQ(shim.poll(handlers), 1u);
  ASSERT_EQ(sink.traps.size(), 1u);
  EXPECT_EQ(sink.traps[0].registers.rdi, 2u);
}

TEST_P(ShimChannel, KnowsWhichTrapsWaitedAtAMomentHoweverManyComeAfterThem) {
  raise(0, kText);
  const TrapsUnderWay first = shim_.under_way();
  EXPECT_FALSE(shim_.have_answers(first));

  EXPECT_EQ(shim_.poll(handlers_), 1u);
  EXPECT_TRUE(shim_.have_answers(first));
  raise(0, kText, 2);

  EXPECT_TRUE(shim_.have_answers(first)) << "that is another one";
  EXPECT_FALSE(shim_.have_answers(shim_.under_way()));
}

TEST_P(ShimChannel, StartsInactiveAndBeatsForward) {
  EXPECT_EQ(control().active, 0u);
  const std::uint64_t first = control().heartbeat;
  EXPECT_GT(first, 0u) << "0 is the shim's word for: never gave up";

  shim_.activate();
  EXPECT_EQ(control().active, 1u);
  EXPECT_GT(control().heartbeat, first);
  shim_.deactivate();
  EXPECT_EQ(control().active, 0u);
}

/// After it, nothing of the region may change whatever is asked of the shim.
void expect_left_alone(Shim& shim, std::span<const std::byte> region,
                       const TrapHandlers& handlers) {
  const std::vector<std::byte> before(region.begin(), region.end());
  const ShimCounters counted = shim.counters();

  shim.heartbeat();
  EXPECT_EQ(shim.poll(handlers), 0u);
  shim.answer(0, handlers);
  shim.set_doorbell(0x5244);
  EXPECT_FALSE(shim.enable_entries(std::array{kText}));
  shim.disable_entry(kText);
  shim.note_arming();
  const auto slot = shim.allocate_slot(8);
  EXPECT_FALSE(slot && shim.write_slot(*slot, std::array{std::byte{0x90}}));
  EXPECT_FALSE(slot && shim.add_entry(GuestVirt(kText.raw() + 0x200), *slot));
  shim.activate();
  shim.deactivate();

  EXPECT_TRUE(std::equal(before.begin(), before.end(), region.begin()));
  EXPECT_TRUE(shim.quiescent()) << "there is nobody to wait for";
  EXPECT_FALSE(shim.waiting(GuestVirt(0xffff888000000000)));
  EXPECT_EQ(shim.counters().orphans, counted.orphans);
}

TEST_P(ShimChannel, WritesNothingOnceTheGuestHasLeftItsKernel) {
  shim_.activate();
  EXPECT_EQ(shim_.state(), ShimState::There);
  raise(0, kText);
  control().left = 1;

  expect_left_alone(shim_, bytes(), handlers_);

  EXPECT_TRUE(sink_.traps.empty());
  EXPECT_EQ(shim_.state(), ShimState::GuestLeft);
  control().left = 0;
  EXPECT_EQ(shim_.state(), ShimState::GuestLeft) << "for ever";
}

TEST_P(ShimChannel, WritesNothingIntoMemoryThatIsSomebodyElsesNow) {
  // Any of what we wrote: header, control, all of it.
  const std::pair<std::size_t, std::size_t> changes[] = {{0, 1},
                                                         {40, 8},
                                                         {SHIM_HEADER_USER_POINTS - 8, 8},
                                                         {layout().data + SHIM_CONTROL_TIMEOUT, 8},
                                                         {0, layout().bytes}};
  for (const auto& [at, size] : changes) {
    PlainRegion region(GetParam());
    const auto all = region.bytes();
    Shim shim(region.memory(), region.layout(), kBase, 2, PlainRegion::gate());
    ASSERT_TRUE(shim.add_entry(kText, *shim.allocate_slot(8)));
    shim.activate();
    std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(at), size, std::byte{0x5a});

    expect_left_alone(shim, all, handlers_);

    EXPECT_EQ(shim.state(), ShimState::Overwritten) << at;
  }
}

TEST_P(ShimChannel, AHeartbeatReplacesNothingButTheLastOne) {
  auto& shared = control();
  shared.heartbeat = 0x1234567812345678;  // all else is still as we left it

  shim_.heartbeat();

  EXPECT_EQ(shared.heartbeat, 0x1234567812345678u);
  EXPECT_EQ(shim_.state(), ShimState::Overwritten);
}

TEST_P(ShimChannel, AFiringWhoseTrapWasGivenUpMeanwhileIsNotLost) {
  raise(0, kText);
  sink_.during = [&] {
    box(0).given_up = SHIM_CLAIM;
    box(0).orphans = 1;
    head(0).head = SHIM_CLAIM | SHIM_FREE;
  };
  shim_.poll(handlers_);
  sink_.during = nullptr;
  EXPECT_EQ(shim_.counters().orphans, 0u) << "it has fired";

  box(0).orphans = 4;  // three that came while the host was silent
  EXPECT_EQ(shim_.counters().orphans, 3u);
  raise(0, kText, 5);
  shim_.poll(handlers_);
  EXPECT_EQ(shim_.counters().orphans, 3u) << "once";
  EXPECT_EQ(sink_.traps.size(), 2u);
}

TEST_P(ShimChannel, ATrapThatWasGivenUpBeforeTheHostSawItIsLost) {
  raise(0, kText);
  box(0).given_up = SHIM_CLAIM;
  box(0).orphans = 1;
  head(0).head = SHIM_CLAIM | SHIM_FREE;

  raise(0, kText, 2);
  shim_.poll(handlers_);

  EXPECT_EQ(shim_.counters().orphans, 1u);
}

TEST_P(ShimChannel, CountsArmings) {
  shim_.note_arming();
  shim_.note_arming();

  EXPECT_EQ(control().armings, 2u);
}

TEST_P(ShimChannel, CountsNothingOfWhatLiesThereAfterwards) {
  box(0).orphans = 3;
  EXPECT_EQ(shim_.counters().orphans, 3u);
  std::ranges::fill(bytes(), std::byte{0x5a});

  EXPECT_EQ(shim_.counters().orphans, 3u);
}

TEST_P(ShimChannel, CountsNothingOfAShimThatWasGoneBeforeTheFirstLook) {
  std::ranges::fill(bytes(), std::byte{0x5a});

  const ShimCounters none = shim_.counters();

  EXPECT_EQ(none.firings + none.orphans + none.late + none.foreign + none.rejected, 0u);
}

TEST_P(ShimChannel, TheTrapThatLeavesTheKernelHasTheLastWrite) {
  const GuestVirt leaving(kText.raw() + 0x100);
  const GuestVirt slot = *shim_.allocate_slot(30);
  (void)shim_.kexec_notice(slot);
  ASSERT_TRUE(shim_.add_entry(leaving, slot));
  shim_.activate();
  raise(0, leaving);

  EXPECT_EQ(shim_.poll(handlers_), 1u);

  EXPECT_EQ(sink_.traps.size(), 1u) << "it fires";
  EXPECT_TRUE(region_.is_answered(0));
  EXPECT_EQ(shim_.state(), ShimState::GuestLeft) << "though the guest has not said so yet";
  raise(1, kText);
  expect_left_alone(shim_, bytes(), handlers_);
}

TEST_P(ShimChannel, IsQuiescentWhenNothingWaits) {
  EXPECT_TRUE(shim_.quiescent());
  head(63).head = SHIM_CLAIMED;
  EXPECT_FALSE(shim_.quiescent());
  raise(63, kText);
  EXPECT_FALSE(shim_.quiescent());
  head(63).answered = head(63).head - SHIM_RAISED;
  EXPECT_FALSE(shim_.quiescent()) << "it is we who know what we have answered";
  head(63).answered = 0;
  shim_.answer(63, handlers_);
  EXPECT_TRUE(shim_.quiescent());
}

TEST_P(ShimChannel, SumsTheGuestsCounters) {
  head(0).head = 5 * SHIM_CLAIM;
  head(1).head = 6 * SHIM_CLAIM | SHIM_CLAIMED;
  box(0).orphans = 2;
  box(1).late = 3;
  auto& shared = control();
  shared.foreign = 4;
  shared.overflows = 1;
  // Neither behind the control words nor behind the last mailbox is there another one.
  const auto data = bytes().subspan(layout().data);
  std::ranges::fill(data.subspan(sizeof shared, SHIM_HEADS - sizeof shared), std::byte{0x5a});
  std::ranges::fill(data.subspan(SHIM_BOX_AT(SHIM_MAILBOXES)), std::byte{0x5a});

  const ShimCounters sum = shim_.counters();

  EXPECT_EQ(sum.firings, 12u);
  EXPECT_EQ(sum.orphans, 3u);
  EXPECT_EQ(sum.late, 3u);
  EXPECT_EQ(sum.foreign, 4u);
}

TEST_P(ShimChannel, TellsTheProfilerWhatAWaitingCpuDid) {
  raise(1, kText);

  const auto waiting = shim_.waiting(GuestVirt(0xffff888000000001));
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->rip, kText.raw());
  EXPECT_FALSE(shim_.waiting(GuestVirt(0xffff888000000000))) << "that one runs";

  EXPECT_TRUE(shim_.contains(kBase));
  EXPECT_TRUE(shim_.contains(GuestVirt(kBase.raw() + layout().bytes - 1)));
  EXPECT_FALSE(shim_.contains(GuestVirt(kBase.raw() + layout().bytes)));
  EXPECT_FALSE(shim_.contains(kText));
}

}  // namespace
}  // namespace ringside::vmm
