#include "vmm/linux/processes/mapping_state.h"

namespace ringside::guest_linux {

std::optional<MappingStates> MappingStates::from(const TypeGraph& types) {
  const auto lock = number_of(types, "mm_struct", {"mmap_lock", "count", "counter"});
  const auto pages = number_of(types, "mm_struct", {"total_vm"});
  const auto code_pages = number_of(types, "mm_struct", {"exec_vm"});
  const auto mappings = number_of(types, "mm_struct", {"map_count"});
  if (!lock || !pages || !code_pages || !mappings) return std::nullopt;
  MappingStates states;
  states.lock_ = *lock, states.pages_ = *pages;
  states.code_pages_ = *code_pages, states.mappings_ = *mappings;
  states.changes_ = number_of(types, "mm_struct", {"mm_lock_seq"});
  if (!states.changes_) states.changes_ = number_of(types, "mm_struct", {"mm_lock_seq", "sequence"});
  return states;
}

std::optional<MappingState> MappingStates::read(const GuestReader& kernel, GuestVirt mm) const {
  constexpr std::uint64_t kWriter = 1;  // RWSEM_WRITER_LOCKED (kernel/locking/rwsem.c)
  const auto lock = load_number(kernel, mm, lock_);
  const auto pages = load_number(kernel, mm, pages_);
  const auto code_pages = load_number(kernel, mm, code_pages_);
  const auto mappings = load_number(kernel, mm, mappings_);
  if (!lock || !pages || !code_pages || !mappings) return std::nullopt;
  MappingState state{(*lock & kWriter) != 0, *pages, *code_pages, *mappings, 0};
  if (changes_) state.changes = load_number(kernel, mm, *changes_).value_or(0);
  return state;
}

}  // namespace ringside::guest_linux
