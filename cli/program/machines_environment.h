// The compiler's view of several machines: one program is compiled for all. Its types, symbols and
// modules are the first machine's. Binding (bind_program.h) finds what differs on another machine,
// and refuses it as it does for a saved program. To compile again for each machine would only hide
// the difference. Probes are looked for on every machine that a description names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dif/d/compile.h"

namespace ringside::cli {

class MachinesEnvironment : public d::Environment {
 public:
  struct Machine {
    std::string name;  // empty: there is none
    d::Environment* environment = nullptr;
  };
  /// At least one. The environments must outlive this object.
  explicit MachinesEnvironment(std::vector<Machine> machines) : machines_(std::move(machines)) {}

  std::string_view kernel_release() const override { return first().kernel_release(); }
  std::uint64_t register_indices() const override { return first().register_indices(); }
  TypeGraph& types() override { return first().types(); }
  bool has_provider(std::string_view name) override { return first().has_provider(name); }
  bool has_module(std::string_view name) override { return first().has_module(name); }
  std::string type_module(TypeId id) override { return first().type_module(id); }
  std::optional<d::KernelVariable> kernel_variable(std::string_view module,
                                                   std::string_view name) override {
    return first().kernel_variable(module, name);
  }
  std::string similar_kernel_variable(std::string_view module, std::string_view name) override {
    return first().similar_kernel_variable(module, name);
  }
  std::int64_t process() override { return first().process(); }

  /// The arguments are those of the first machine that has such a probe, in the first machine's
  /// types.
  d::ProbeSignature signature(const dif::ProbeDescription& pattern) override;
  d::ProbeSignature match(const dif::ProbeDescription& pattern) override {
    return find(pattern, &d::Environment::match);
  }
  /// Of the first machine, with whose kernel the program is compiled; of another machine's probes
  /// signature() alone.
  void for_each_signature(const dif::ProbeDescription& pattern,
                          const std::function<bool(const d::ProbeSignature&)>& visit) override;
  /// Numbers are each machine's own: empty unless it is the same probe on all that have it.
  std::optional<dif::ProbeDescription> probe_by_id(dif::ProbeId id) override;
  std::string why_no_match(const dif::ProbeDescription& pattern) override;
  /// Why a description is for none of the machines: "there is no machine web9; there are web1 and
  /// web2". Empty where it is for one.
  std::string why_no_machine(const dif::ProbeDescription& pattern) const;

 private:
  d::Environment& first() const { return *machines_.front().environment; }
  using Ask = d::ProbeSignature (d::Environment::*)(const dif::ProbeDescription&);
  d::ProbeSignature find(const dif::ProbeDescription& pattern, Ask ask);

  std::vector<Machine> machines_;
  std::map<std::string, d::ProbeSignature> signatures_;  // by pattern
};

/// The type of `from` that `id` is, found in `to` by its name, or made there. A structure that `to`
/// does not have becomes one without members.
TypeId type_of_other_graph(TypeGraph& to, const TypeGraph& from, TypeId id);

}  // namespace ringside::cli
