#include "vmm/shim/fetch_list.h"

#include <algorithm>
#include <cstring>

#include "vmm/base/bytes.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
static_assert(FetchCheck::kTids * kWord == SHIM_RECORD_PID &&
              SHIM_RECORD_TGID == SHIM_RECORD_PID + sizeof(std::uint32_t));

shim_check encode_check(const FetchCheck& check) {
  unsigned words = SHIM_LOAD_CHECK;
  if (check.is_negated) words |= SHIM_CHECK_NEGATED;
  if (check.is_signed) words |= SHIM_CHECK_SIGNED;
  if (check.relation == FetchCheck::Relation::Less) words |= SHIM_CHECK_LESS;
  if (check.relation == FetchCheck::Relation::LessUnsigned) words |= SHIM_CHECK_BELOW;
  if (check.lets_wait) words |= SHIM_CHECK_WAITS;
  return {check.source, static_cast<std::uint16_t>(words), check.left, check.right, 0, check.mask,
          check.with};
}

shim_check encode_check(const TaskCheck& check) {
  const unsigned words = check.is_negated ? SHIM_CHECK_NEGATED : 0;
  return {check.offset, static_cast<std::uint16_t>(words), 0, 0, 0, check.mask, check.with};
}

template <class Entry>
void append(std::vector<std::byte>& list, const Entry& entry) {
  const auto bytes = std::as_bytes(std::span(&entry, 1));
  list.insert(list.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::size_t FetchList::bytes_before(std::size_t load) const {
  std::size_t bytes = runs_at();
  for (std::size_t n = 0; n < load; ++n) bytes += sizeof(shim_run) + kWord * loads_[n].words;
  return bytes;
}

std::optional<std::size_t> FetchList::add(const FetchLoad& load) {
  const auto found = std::ranges::find(loads_, load);
  if (found != loads_.end()) return static_cast<std::size_t>(found - loads_.begin());
  const bool fits = loads_.size() < kMostLoads && load.words != 0 &&
                    load.words <= FetchLoad::kMostWords &&
                    record_bytes() + sizeof(shim_run) + kWord * load.words <= kMostRecordBytes;
  if (!fits) return std::nullopt;
  loads_.push_back(load);
  return loads_.size() - 1;
}

bool FetchList::add_check(const FetchCheck& check) {
  if (checks_.size() >= kMostChecks) return false;
  checks_.push_back({check, loads_.size()});
  return true;
}

bool FetchList::add_check(const TaskCheck& check) {
  if (task_checks_.size() >= kMostChecks) return false;
  task_checks_.push_back(check);
  return true;
}

/// No word is 1 under no mask.
void FetchList::wait_only_for(std::uint16_t source, std::span<const GuestVirt> values) {
  waits_only_for_some_ = true;
  const auto wait_for = [&](std::uint64_t value) {
    add_check(FetchCheck{.source = source, .is_negated = true, .with = value, .lets_wait = true});
  };
  for (const GuestVirt each : values) wait_for(each.raw());
  for (std::size_t n = 0; n < kSpareChecks && checks_.size() + 1 < kMostChecks; ++n) {
    wait_for(kNothing);
  }
  add_check(FetchCheck{.source = source, .mask = 0, .with = 1});
}

bool FetchList::add_waited_for(GuestVirt value) {
  for (PlacedCheck& each : checks_) {
    if (!each.check.lets_wait || !each.check.is_negated || each.check.with != kNothing) continue;
    each.check.with = value.raw();
    return true;
  }
  return false;
}

bool FetchList::drop_checks() {
  const std::size_t left_out =
      std::erase_if(checks_, [](const PlacedCheck& one) { return !one.check.lets_wait; });
  const bool any = left_out != 0 || !task_checks_.empty();
  task_checks_.clear();
  return any;
}

std::size_t FetchList::record_bytes() const {
  return bytes_before(loads_.size()) + (has_stack_ ? sizeof(shim_run) + kWord * stack_words_ : 0);
}

std::size_t FetchList::least_record_bytes() const {
  return bytes_before(loads_.size()) + (has_stack_ ? sizeof(shim_run) + kLeastStack : 0);
}

void FetchList::fit(std::size_t record_bytes) {
  const std::size_t taken = bytes_before(loads_.size()) + sizeof(shim_run);
  stack_words_ = has_stack_ && record_bytes > taken ? (record_bytes - taken) / kWord : 0;
}

std::uint16_t FetchList::source_of(std::size_t load) const {
  return static_cast<std::uint16_t>((bytes_before(load) + sizeof(shim_run)) / kWord);
}

shim_list FetchList::head() const {
  const bool has_entries = copies_memory() || !checks_.empty();
  const unsigned copies =
      (copies_.ids ? SHIM_COPY_IDS : 0) | (copies_.registers ? SHIM_COPY_REGISTERS : 0) |
      (copies_percpu() ? SHIM_COPY_PERCPU : 0) | (has_entries ? SHIM_COPY_RUNS : 0);
  return {.copies = static_cast<std::uint8_t>(copies),
          .task_checks = static_cast<std::uint8_t>(task_checks_.size()),
          .runs = static_cast<std::uint16_t>(runs_at()),
          .entries = static_cast<std::uint16_t>(sizeof(shim_list) +
                                                sizeof(shim_check) * task_checks_.size()),
          .unused = 0};
}

std::vector<std::byte> FetchList::encode() const {
  std::vector<std::byte> list;
  append(list, head());
  for (const TaskCheck& one : task_checks_) append(list, encode_check(one));
  auto check = checks_.begin();
  const auto append_checks = [&](std::size_t loads) {
    for (; check != checks_.end() && check->loads == loads; ++check) {
      append(list, encode_check(check->check));
    }
  };
  for (std::size_t n = 0; n < loads_.size(); ++n) {
    append_checks(n);
    const FetchLoad& load = loads_[n];
    const unsigned words =
        load.words | (load.is_users ? SHIM_LOAD_USER : 0) | (load.index ? SHIM_LOAD_INDEXED : 0);
    append(list, shim_load{load.source, static_cast<std::uint16_t>(words), load.offset});
    if (load.index) {
      append(list, shim_index{load.index->source, load.index->left, load.index->right, 0});
    }
  }
  append_checks(loads_.size());
  const unsigned stack = SHIM_LOAD_STACK | static_cast<unsigned>(stack_words_);
  if (has_stack_) append(list, shim_load{0, static_cast<std::uint16_t>(stack), 0});
  append(list, shim_load{});
  return list;
}

Result<shim_fetch> FetchFacts::encode() const {
  if (ram.empty() || ram.size() > SHIM_RAM_RANGES) {
    return fail(ErrorCode::Unsupported, "the guest's RAM lies in too many pieces");
  }
  shim_fetch fetch{};
  fetch.root = kernel_table.root.raw();
  fetch.direct_map = direct_map.raw();
  fetch.frames = arch::pte::kAddress & ~kernel_table.encryption_mask;
  fetch.top_shift = arch::kPageShift + 9 * (kernel_table.levels - 1);
  fetch.ram_count = static_cast<std::uint32_t>(ram.size());
  for (std::size_t n = 0; n < ram.size(); ++n) {
    fetch.ram[n] = {ram[n].base.raw(), ram[n].base.wrapping_add(ram[n].size).raw()};
  }
  fetch.task_stack = task_stack;
  fetch.stack_bytes = static_cast<std::uint32_t>(stack_bytes);
  return fetch;
}

void RecordedRuns::begin(const FetchList& list, std::span<const std::byte> bytes) {
  count_ = 0;
  for (const FetchLoad& load : list.loads()) add(bytes, load.words);
  if (list.has_stack()) add(bytes, list.stack_words());
}

/// The next run, in room for so many words; takes it off the bytes.
void RecordedRuns::add(std::span<const std::byte>& bytes, std::size_t words) {
  const std::size_t room = kWord * words;
  if (bytes.size() < sizeof(shim_run) + room) {
    bytes = {};
    return;
  }
  const auto run = load_at<shim_run>(bytes, 0);
  const std::uint64_t size = run.end - run.address;
  const bool is_one = size <= room && size % kWord == 0 && run.address % kWord == 0;
  if (is_one && size != 0) runs_[count_++] = {run.address, bytes.subspan(sizeof run).first(size)};
  bytes = bytes.subspan(sizeof run + room);
}

/// The longest of those that have it: a string's run may begin where a word was copied, too.
std::span<const std::byte> RecordedRuns::from(GuestVirt at) const {
  std::span<const std::byte> longest;
  for (const Run& run : std::span(runs_).first(count_)) {
    const std::uint64_t offset = at.raw() - run.address;
    if (offset >= run.bytes.size()) continue;
    const auto rest = run.bytes.subspan(offset);
    if (rest.size() > longest.size()) longest = rest;
  }
  return longest;
}

}  // namespace ringside::vmm
