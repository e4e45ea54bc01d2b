// All instructions of live kernels: how many of them can be probed, and whether each form of them
// does the same in its slot.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "disasm/decoder.h"
#include "disasm/form_run_for_tests.h"
#include "providers/trap_points/sites/instruction_list.h"
#include "providers/trap_points/sites/original_text.h"
#include "providers/trap_points/sites/site_examiner.h"
#include "tests/live/live_guest.h"
#include "tests/live/no_trap_points.h"

namespace ringside::live {
namespace {

using disasm::Operation;
using guest_linux::Symbol;

class LiveText : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto image = find_live_image(GetParam());
    if (!image) GTEST_SKIP() << image.error().message;
    auto guest = LiveGuest::boot(*image, 2);
    ASSERT_TRUE(guest) << guest.error().message;
    guest_ = std::move(*guest);
    reader_.emplace(guest_->machine().memory(), guest_->kernel().table());
    text_.emplace(*reader_, nothing_, guest_->kernel());
  }

  /// Of every function that ftrace knows, and its .cold parts; once each.
  template <class Visit>
  void for_each_instruction(Visit visit) {
    const auto& symbols = guest_->kernel().symbols();
    std::uint64_t previous = 0;
    for (const Symbol& function : symbols.symbols()) {
      if (!function.is_text() || function.address.raw() == previous) continue;
      previous = function.address.raw();
      if (!symbols.modules()[function.module].has_text_at(function.address)) continue;
      const auto list = providers::list_instructions(*text_, symbols, function);
      if (!list) continue;
      for (const Operation& one : list->instructions) visit(function, *list, one);
    }
  }

  NoTrapPoints nothing_;
  std::unique_ptr<LiveGuest> guest_;
  std::optional<vmm::PageTableReader> reader_;
  std::optional<providers::OriginalText> text_;
};

/// Without addresses, so that equal reasons are equal.
std::string kind_of(std::string reason) {
  if (const auto colon = reason.find(": "); colon != reason.npos) reason.erase(0, colon + 2);
  return reason;
}

TEST_P(LiveText, NearlyEveryInstructionCanBeProbed) {
  const auto fault_search = providers::find_fault_search(*text_, guest_->kernel());
  ASSERT_TRUE(fault_search) << fault_search.error().message;
  providers::SiteExaminer examiner(*text_, guest_->kernel(), std::nullopt, fault_search);
  examiner.find_functions_without_idt();
  std::size_t all = 0;
  std::map<std::string, std::size_t> refused;  // by reason
  for_each_instruction(
      [&](const Symbol&, const providers::InstructionList& list, const Operation& one) {
        ++all;
        const bool of_head = list.ftrace && one.address < list.ftrace->end;
        const GuestVirt stand = of_head ? list.ftrace->end : one.address;
        const auto site = examiner.examine(stand, providers::SitePolicy::Normal);
        if (!site) ++refused[kind_of(site.error().message)];
      });

  std::size_t lost = 0;
  for (const auto& [reason, times] : refused) {
    std::cout << fmt::format("{:>8} {}\n", times, reason);
    lost += times;
  }
  std::cout << fmt::format("{} of {} instructions, {:.2f} %\n", all - lost, all,
                           100.0 * static_cast<double>(all - lost) / static_cast<double>(all));
  EXPECT_GT(all, 2'000'000u);
  EXPECT_LT(lost, all / 100);
}

TEST_P(LiveText, EachFormDoesTheSameInItsSlot) {
  using Kind = disasm::FormVerdict::Kind;
  disasm::FormRunner runner;
  std::set<std::string> seen;
  std::map<Kind, std::size_t> forms;
  for_each_instruction(
      [&](const Symbol& function, const providers::InstructionList& list, const Operation& one) {
        if (list.ftrace && one.address < list.ftrace->end) return;  // never displaced
        std::array<std::byte, arch::kLongestInstruction> buffer;
        const auto bytes = std::span(buffer).first(one.length);
        if (!text_->read(one.address, bytes)) return;
        if (!seen.insert(disasm::form_of(bytes)).second) return;
        const auto verdict = runner.run(bytes, 4);
        ++forms[verdict.kind];
        EXPECT_NE(verdict.kind, Kind::Different)
            << function.name << "+" << one.address.offset_from(function.address) << ": "
            << disasm::assembly(bytes, one.address) << ": " << verdict.what;
      });

  std::cout << fmt::format(
      "{} forms: {} ran and did the same, {} were the same signal, {} left out, {} refused\n",
      seen.size(), forms[Kind::Same], forms[Kind::Signal], forms[Kind::LeftOut],
      forms[Kind::Refused]);
  EXPECT_GT(seen.size(), 10'000u);
  EXPECT_GT(forms[Kind::Same], seen.size() / 100 * 95);
}

std::string image_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Images, LiveText, testing::Values("debian-6.1", "debian-6.12"),
                         image_name);

}  // namespace
}  // namespace ringside::live
