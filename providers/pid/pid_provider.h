// The provider `pid`: probes on the functions and instructions of a process of the guest, as
// pid1234:libc.so.6:malloc:entry. Names are `entry`, `return`, and the offset of an instruction in
// its function, in hexadecimal. Probes are made on demand, for a description that names one process
// by its number, or all by pid*; `a.out` is the program of the one (process_provider.h).
// A return is a return instruction, or a jump to another function: never an address on the stack,
// which programs may move or give up.
// Does not: find functions that no symbol table names.
#pragma once

#include "providers/pid/operand_arguments.h"
#include "providers/pid/process_provider.h"

namespace ringside::providers {

class PidProvider final : public ProcessProvider {
 public:
  /// All must outlive it.
  PidProvider(const vmm::GuestMemory& memory, guest_linux::Kernel& kernel, UserPointTable& table,
              ProbePoints& points);

  /// "pid" and a number, or a star.
  bool has_name(std::string_view provider) const override;
  bool may_match(std::string_view pattern) const override { return pattern.starts_with(name()); }
  /// Of entries and returns. That not each instruction can have a probe is no gap.
  void gaps(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) override;

 private:
  static std::optional<std::int32_t> process_in(std::string_view provider);
  Result<void> look(const dif::ProbeDescription& names, const Trouble& trouble,
                    std::set<std::uint32_t>* published, const Module* only) override;
  std::string where_searched(const Pattern& pattern, const std::vector<Module>& modules);
  std::string way_out(const Pattern& pattern, const std::vector<Module>& modules);
  void tell_missing(const Pattern& pattern, const std::vector<Module>& modules);
  Result<bool> look_at(const Pattern& pattern, const Module& module);
  Place entry_place(const Module& module, const guest_linux::FileFunction& function);
  Result<std::vector<Entry>> entries_of(const Pattern& pattern, const Module& module,
                                        const guest_linux::FileFunction& function);

  const OperandArguments entry_arguments_;
  const ArgumentPlan entry_plan_;
  const OperandArguments framed_entry_arguments_;
  const ArgumentPlan framed_entry_plan_;
  const OperandArguments go_entry_arguments_;
  const ArgumentPlan go_entry_plan_;
};

}  // namespace ringside::providers
