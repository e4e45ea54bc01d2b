// Making tracepoints, and looking at them.
#include "providers/tracepoint/tracepoint.h"

#include "providers/tracepoint/sites/fault_search.h"
#include "providers/tracepoint/sites/function_sites.h"
#include "providers/tracepoint/tracepoint_state.h"

namespace ringside::providers {
namespace {

using guest_linux::Kernel;

/// Every way into another kernel without a reset goes through machine_kexec(), also a crash's
/// (arch/x86/kernel/machine_kexec_64.c, since 2.6.13): the other vCPUs are stopped by then, and
/// this one still has its interrupt table.
Result<std::optional<GuestVirt>> find_kexec_site(const GuestReader& text,
                                                 const guest_linux::SymbolTable& symbols) {
  const guest_linux::Symbol* const function = symbols.find("machine_kexec", "vmlinux");
  if (function == nullptr) return std::nullopt;  // a kernel without kexec
  return TRY(entry_site(text, *function, &symbols));
}

}  // namespace

TracepointTable::State::State(vmm::Machine& of, vmm::Shim& with, Kernel& knows)
    : shim(with),
      kernel(knows),
      table(knows.table()),
      live(of.memory(), knows.table()),
      watched(of.memory(), knows.table()),
      text(live, *this, knows),
      kexec_site(find_kexec_site(text, knows.symbols())),
      fault_search(find_fault_search(text, knows)),
      displaced(with, {kexec_site, fault_search}),
      examiner(text, knows, kexec_site.value_or(std::nullopt), fault_search),
      runs(text, knows, examiner),
      hardware(knows) {}

TracepointTable::TracepointTable(vmm::Machine& machine, vmm::Shim& shim, Kernel& kernel)
    : state_(std::make_unique<State>(machine, shim, kernel)) {}

TracepointTable::~TracepointTable() = default;

const GuestReader& TracepointTable::original_text() const {
  return state_->text;
}

Result<ProbeSite> TracepointTable::examine(GuestVirt address, SitePolicy policy) {
  if (state_->examiner.find_no_idt_text()) look_again();
  auto site = state_->examiner.examine(address, policy);
  if (!site || !site->may_fault()) return site;
  const auto& search = state_->search_site();
  if (!search) return refuse(address, "exception table; " + search.error().message);
  return site;
}

const Result<ProbeSite>& TracepointTable::State::search_site() {
  if (!searching) {
    searching = fault_search ? examiner.examine(*fault_search, SitePolicy::Normal)
                             : tl::make_unexpected(fault_search.error());
  }
  return *searching;
}

/// Before the first point whose fault the kernel mends; it stays until nobody can be in such a
/// slot.
Result<void> TracepointTable::State::keep_search() {
  if (search && points[*search].stage != Stage::Dropped) return {};
  search = TRY(add(TRY(search_site())));
  return {};
}

/// A point that the shim has forgotten. A slot is good for the instruction that it was made of, so
/// where that is another one now, there is a new slot: a task may still be inside the old one.
Result<void> TracepointTable::State::revive(Point& point, const ProbeSite& site) {
  const bool same = std::ranges::equal(point.site.instruction(), site.instruction());
  point.slot = same ? point.slot : TRY(displaced.make_slot(site));
  TRY(shim.add_entry(point.address(), point.slot));
  point.site = site;
  point.users = 0;
  point.jump_is_known = false;
  point.stage = Stage::Prepared;
  return {};
}

Result<std::uint32_t> TracepointTable::State::add(const ProbeSite& site) {
  const GuestVirt address = site.address();
  if (const auto id = index.find(address)) {
    Point& point = points[*id];
    if (point.stage == Stage::Dropped || point.stage == Stage::Parked) {
      TRY(revive(point, site));
    } else if (!std::ranges::equal(point.site.instruction(), site.instruction())) {
      return refuse(address, "the guest changed its text");
    }
    ++point.users;
    return *id;
  }
  const GuestVirt slot = TRY(displaced.make_slot(site));
  TRY(shim.add_entry(address, slot));
  const auto id = static_cast<std::uint32_t>(points.size());
  points.emplace_back(site, slot).users = 1;
  index.insert(address, id);
  return id;
}

Result<TracepointId> TracepointTable::add(const ProbeSite& site) {
  const std::lock_guard lock(state_->lock);
  if (site.may_fault()) TRY(state_->keep_search());
  return TracepointId{TRY(state_->add(site))};
}

void TracepointTable::release(GuestVirt address) {
  State& s = *state_;
  const std::lock_guard lock(s.lock);
  const auto id = s.index.find(address);
  if (id && s.points[*id].users > 0) --s.points[*id].users;
}

bool TracepointTable::is_dropped(GuestVirt address) const {
  const auto id = state_->index.find(address);
  return id && state_->points[*id].stage == State::Stage::Dropped;
}

const Result<std::optional<GuestVirt>>& TracepointTable::kexec_site() const {
  return state_->kexec_site;
}

std::size_t TracepointTable::size() const {
  return state_->points.size();
}

std::span<const TracepointTable::Slot> TracepointTable::slots() const {
  return state_->displaced.slots();
}

std::size_t TracepointTable::armed() const {
  const std::lock_guard lock(state_->lock);
  return state_->by_address.size();
}

bool TracepointTable::any_armed() const {
  return armed() != 0 || is_copied_by_kprobe();
}

bool TracepointTable::is_copied_by_kprobe() const {
  return state_->is_copied_by_kprobe;
}

std::size_t TracepointTable::jumps() const {
  State& s = *state_;
  const std::lock_guard lock(s.lock);
  return s.count_jumping();
}

bool TracepointTable::is_armed(TracepointId id) const {
  return id.value < state_->points.size() && State::is_standing(state_->points[id.value].stage);
}

}  // namespace ringside::providers
