#include "dif/verify/kept_arguments.h"

#include <algorithm>
#include <array>
#include <optional>

#include "dif/program/builtin.h"
#include "dif/program/insn.h"

namespace ringside::dif {
namespace {

/// A register's value, as far as it matters here.
struct Held {
  std::optional<std::uint64_t> constant{};
  std::optional<std::uint16_t> argument{};
};

std::optional<std::uint16_t> argument_of(unsigned builtin) {
  const unsigned first = static_cast<unsigned>(Builtin::Arg0);
  const bool is_one = builtin >= first && builtin <= static_cast<unsigned>(Builtin::Arg9);
  return is_one ? std::optional(static_cast<std::uint16_t>(builtin - first)) : std::nullopt;
}

bool is_whole_variable_of_thread(const Difo& difo, std::uint16_t id) {
  return std::ranges::any_of(difo.variables, [id](const Variable& one) {
    return one.scope == VariableScope::Thread && one.id == id && one.kind == VariableKind::Scalar &&
           !is_by_reference(one.type) && one.type.size == sizeof(std::uint64_t);
  });
}

/// The literal name, if all of them are "entry" of one provider.
std::string_view provider_of_entries(const Clause& clause) {
  std::string_view provider;
  for (const ProbeDescription& probe : clause.probes) {
    const bool is_literal = probe.provider.find_first_of("*?[\\") == std::string::npos;
    const bool is_same = provider.empty() || provider == probe.provider;
    if (probe.name != "entry" || !is_literal || !is_same) return {};
    provider = probe.provider;
  }
  return provider;
}

}  // namespace

/// Returns whether what comes after the object is as certain. Such an object only moves arguments
/// and constants.
bool KeptArgumentFinder::add_stores(std::vector<Store>& stores, const Difo& difo, bool is_certain) {
  std::array<Held, kRegisters> registers{Held{.constant = 0}};
  const auto set = [&registers](unsigned number, Held held) {
    if (number % kRegisters != 0) registers[number % kRegisters] = held;
  };
  bool is_plain = true;
  for (const std::uint32_t word : difo.text) {
    const Insn in{word};
    switch (in.op()) {
      case Opcode::Nop:
      case Opcode::Ret: break;
      case Opcode::Setx: set(in.rd(), {.constant = difo.integers[in.index()]}); break;
      case Opcode::Mov: set(in.rd(), registers[in.r1() % kRegisters]); break;
      case Opcode::Ldgs: {
        const auto argument = argument_of(in.index());
        is_plain &= argument.has_value();
        set(in.rd(), {.argument = argument});
        break;
      }
      case Opcode::Stts: {
        const Held& held = registers[in.rd() % kRegisters];
        Store store{.variable = in.index()};
        if (is_plain && held.constant == 0) store.value = Store::Value::Zero;
        if (is_plain && is_certain && held.argument &&
            is_whole_variable_of_thread(difo, store.variable)) {
          store.value = Store::Value::Argument;
          store.argument = *held.argument;
        }
        stores.push_back(store);
        break;
      }
      default: is_plain = false; break;
    }
  }
  return is_certain && is_plain;
}

KeptArgumentFinder::Stores KeptArgumentFinder::stores_of(const Clause& clause) {
  Stores stores{.all = {}, .provider = provider_of_entries(clause)};
  bool is_certain = !clause.predicate && !clause.repeat && !clause.continues;
  if (clause.predicate) add_stores(stores.all, *clause.predicate, false);
  for (const Action& action : clause.actions) {
    for (const Difo& difo : action.arguments) {
      is_certain = add_stores(stores.all, difo, is_certain);
    }
  }
  return stores;
}

KeptArgumentFinder::KeptArgumentFinder(const Program& program) {
  for (const Clause& clause : program.clauses) {
    clauses_.push_back(stores_of(clause));
    any_ |= std::ranges::any_of(clauses_.back().all, [](const Store& store) {
      return store.value == Store::Value::Argument;
    });
  }
}

bool KeptArgumentFinder::holds_nothing_else(std::uint16_t variable,
                                            std::string_view provider) const {
  return std::ranges::all_of(clauses_, [&](const Stores& clause) {
    return clause.provider == provider ||
           std::ranges::all_of(clause.all, [variable](const Store& store) {
             return store.variable != variable || store.value == Store::Value::Zero;
           });
  });
}

KeptArguments KeptArgumentFinder::find(std::string_view provider,
                                       std::span<const std::uint32_t> at_entry) const {
  std::map<std::uint16_t, Store> last;
  for (const std::uint32_t clause : at_entry) {
    for (const Store& store : clauses_[clause].all) last[store.variable] = store;
  }
  KeptArguments kept;
  for (const auto& [variable, store] : last) {
    if (store.value == Store::Value::Argument && holds_nothing_else(variable, provider)) {
      kept[variable] = store.argument;
    }
  }
  return kept;
}

}  // namespace ringside::dif
