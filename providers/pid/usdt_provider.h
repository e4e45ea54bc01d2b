// Static probes of the guest's programs and libraries (USDT), which their authors have marked with
// sys/sdt.h or dtrace(1). The provider's name is that of the note with a process's number behind
// it, as postgresql1234:postgres:exec_simple_query:query-start, or with a star for all processes
// (process_provider.h). The module is the file, the function the one that the nop lies in; in the
// probe's name each "__" of the note is a "-", as dtrace(1) has it. A probe that stands at several
// places of a function is one probe.
// Probes are made on demand. For a star it looks at the files of all processes, so the registry
// asks only for what no other provider may mean. Does not: know types; arg0 and on have the sizes
// and signs that the notes tell.
#pragma once

#include <memory>

#include "providers/pid/operand_arguments.h"
#include "providers/pid/process_provider.h"

namespace ringside::providers {

class UsdtProvider final : public ProcessProvider {
 public:
  /// All must outlive it.
  UsdtProvider(const vmm::GuestMemory& memory, guest_linux::Kernel& kernel, UserPointTable& table,
               ProbePoints& points);

  bool has_name(std::string_view provider) const override { return may_match(provider); }
  /// Whether it ends with a number or a star, and has something before it.
  bool may_match(std::string_view pattern) const override;
  bool is_for_the_rest() const override { return true; }
  void gaps(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) override {
    sum_up_missing(
        pattern, [](const dif::ProbeDescription&) { return true; }, visit);
  }

 private:
  struct Plan {
    explicit Plan(std::string_view text) : by(parse_operands(text)), plan(by.plan()) {}
    OperandArguments by;
    ArgumentPlan plan;
  };

  Result<void> look(const dif::ProbeDescription& names, const Trouble& trouble,
                    std::set<std::uint32_t>* published, const Module* only) override;
  /// Whether there are such probes. `provider`: a pattern for the notes' own names.
  Result<bool> look_at(const Pattern& pattern, std::string_view provider, const Module& module);
  std::vector<Entry> entries_of(const Pattern& pattern, std::string_view provider,
                                const Module& module);
  const ArgumentPlan* plan_of(const std::string& arguments);

  std::map<std::string, std::unique_ptr<const Plan>> plans_;  // by the text of a note
};

}  // namespace ringside::providers
