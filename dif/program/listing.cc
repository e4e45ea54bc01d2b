#include "dif/program/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "dif/program/builtin.h"
#include "dif/program/insn.h"

namespace ringside::dif {

namespace {

using Output = std::back_insert_iterator<std::string>;

std::string type_text(const ValueType& type) {
  switch (type.kind) {
    case ValueKind::Void: return "D type (void)";
    case ValueKind::String:
      return type.size == 0 ? "D type (string)"
                            : fmt::format("D type (string) (size {})", type.size);
    case ValueKind::Bytes: return fmt::format("D type (bytes) by ref (size {})", type.size);
    case ValueKind::Integer:
      return fmt::format("D type ({}) (size {})", type.is_signed ? "integer" : "unsigned",
                         type.size);
    case ValueKind::KernelStack: return fmt::format("D type (stack) (size {})", type.size);
    case ValueKind::UserStack: return fmt::format("D type (ustack) (size {})", type.size);
    case ValueKind::KernelSymbol: return fmt::format("D type (sym) (size {})", type.size);
    case ValueKind::KernelModule: return fmt::format("D type (mod) (size {})", type.size);
    case ValueKind::UserSymbol: return fmt::format("D type (usym) (size {})", type.size);
    case ValueKind::UserModule: return fmt::format("D type (umod) (size {})", type.size);
    case ValueKind::UserAddress: return fmt::format("D type (uaddr) (size {})", type.size);
  }
  return fmt::format("D type (kind {}) (size {})", static_cast<unsigned>(type.kind), type.size);
}

VariableScope scope_of(Opcode op) {
  switch (op) {
    case Opcode::Ldts:
    case Opcode::Stts:
    case Opcode::Ldtaa:
    case Opcode::Sttaa: return VariableScope::Thread;
    case Opcode::Ldls:
    case Opcode::Stls: return VariableScope::Clause;
    default: return VariableScope::Global;
  }
}

std::string variable_comment(const Difo& difo, Insn in) {
  const std::uint16_t id = in.index();
  if (const auto builtin = find_builtin(id)) {
    return fmt::format("\t\t! DT_VAR({}) = \"{}\"", id, builtin->name);
  }
  const auto at = std::ranges::find_if(difo.variables, [&](const Variable& variable) {
    return variable.id == id && variable.scope == scope_of(in.op());
  });
  return at == difo.variables.end() ? "" : fmt::format("\t\t! DT_VAR({}) = \"{}\"", id, at->name);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '"':
      case '\\': out += '\\'; [[fallthrough]];
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\x{:02x}", c);
        } else {
          out += c;
        }
    }
  }
  return out;
}

std::string constant_text(const Difo& difo, Insn in) {
  const std::uint16_t index = in.index();
  if (in.op() == Opcode::Setx) {
    std::string text = fmt::format("DT_INTEGER[{}], %r{}", index, in.rd());
    if (index < difo.integers.size()) text += fmt::format("\t\t! {:#x}", difo.integers[index]);
    return text;
  }
  std::string text = fmt::format("DT_STRING[{}], %r{}", index, in.rd());
  if (index < difo.strings.size()) {
    const std::string_view rest = std::string_view(difo.strings).substr(index);
    text += fmt::format("\t\t! \"{}\"", escaped(rest.substr(0, rest.find('\0'))));
  }
  return text;
}

std::string call_text(Insn in) {
  const auto subroutine = find_subroutine(in.index());
  return fmt::format("DIF_SUBR({}), %r{}{}", in.index(), in.rd(),
                     subroutine ? fmt::format("\t\t! {}", subroutine->name) : "");
}

std::string array_comment(std::uint8_t id) {
  const auto array = find_builtin_array(id);
  return array ? fmt::format("\t\t! DT_VAR({}) = \"{}\"", id, array->name) : "";
}

std::string operands(const Difo& difo, Insn in, Form form) {
  const unsigned r1 = in.r1(), r2 = in.r2(), rd = in.rd();
  switch (form) {
    case Form::Rrr: return fmt::format("%r{}, %r{}, %r{}", r1, r2, rd);
    case Form::Rr: return fmt::format("%r{}, %r{}", r1, rd);
    case Form::Compare: return fmt::format("%r{}, %r{}", r1, r2);
    case Form::Test: return fmt::format("%r{}", r1);
    case Form::Branch: return fmt::format("{}", in.label());
    case Form::Load: return fmt::format("[%r{}], %r{}", r1, rd);
    case Form::Store: return fmt::format("%r{}, [%r{}]", r1, rd);
    case Form::Copy: return fmt::format("%r{}, %r{}, %r{}", r1, r2, rd);
    case Form::Return: return fmt::format("%r{}", rd);
    case Form::None: return {};
    case Form::SetInteger:
    case Form::SetString: return constant_text(difo, in);
    case Form::LoadArray:
    case Form::StoreArray:
      return fmt::format("DT_VAR({}), %r{}, %r{}{}", r1, r2, rd, array_comment(in.r1()));
    case Form::LoadVariable:
      return fmt::format("DT_VAR({}), %r{}{}", in.index(), rd, variable_comment(difo, in));
    case Form::StoreVariable:
      return fmt::format("%r{}, DT_VAR({}){}", rd, in.index(), variable_comment(difo, in));
    case Form::Push: return fmt::format("DT_TYPE({}), %r{}, %r{}", r1, rd, r2);
    case Form::Call: return call_text(in);
    case Form::Translate: return fmt::format("DT_XLREF[{}], %r{}", in.index(), rd);
  }
  return {};
}

std::string_view scope_text(VariableScope scope) {
  switch (scope) {
    case VariableScope::Global: return "glb";
    case VariableScope::Thread: return "tls";
    case VariableScope::Clause: return "loc";
  }
  return "???";
}

/// How the object uses a variable: "r", "w" or "rw"; empty when it only declares it.
std::string_view uses(const Difo& difo, std::uint16_t id, VariableScope scope) {
  bool reads = false, writes = false;
  for (const std::uint32_t word : difo.text) {
    const Insn in{word};
    const auto info = opcode_info(static_cast<std::uint8_t>(in.op()));
    if (!info || in.index() != id || scope_of(in.op()) != scope) continue;
    reads |= info->form == Form::LoadVariable;
    writes |= info->form == Form::StoreVariable;
  }
  return reads && writes ? "rw" : reads ? "r" : writes ? "w" : "";
}

ValueType type_of(BuiltinType type) {
  switch (type) {
    case BuiltinType::Void: return {ValueKind::Void, false, 0};
    case BuiltinType::String: return {ValueKind::String, false, 0};
    case BuiltinType::Signed32: return {ValueKind::Integer, true, 4};
    case BuiltinType::Signed64: return {ValueKind::Integer, true, 8};
    case BuiltinType::Unsigned16: return {ValueKind::Integer, false, 2};
    case BuiltinType::Unsigned32: return {ValueKind::Integer, false, 4};
    case BuiltinType::Unsigned64:
    case BuiltinType::Pointer: return {ValueKind::Integer, false, 8};
  }
  return {};
}

/// Built-in variables that the object reads, by id, then its own.
void list_variables(const Difo& difo, Output out) {
  std::vector<Variable> all;
  for (const std::uint32_t word : difo.text) {
    const Insn in{word};
    const auto builtin = in.op() == Opcode::Ldgs ? find_builtin(in.index()) : std::nullopt;
    if (!builtin) continue;
    const auto id = static_cast<std::uint16_t>(builtin->id);
    if (std::ranges::any_of(all, [&](const Variable& known) { return known.id == id; })) continue;
    all.push_back({id, VariableScope::Global, VariableKind::Scalar, type_of(builtin->type),
                   std::string(builtin->name)});
  }
  std::ranges::sort(all, {}, &Variable::id);
  all.insert(all.end(), difo.variables.begin(), difo.variables.end());
  if (all.empty()) return;
  fmt::format_to(out, "\n{:<16} {:<4} {:<3} {:<3} {:<4} {}\n", "NAME", "ID", "KND", "SCP", "FLAG",
                 "TYPE");
  for (const Variable& variable : all) {
    fmt::format_to(out, "{:<16} {:<4x} {:<3} {:<3} {:<4} {}\n", variable.name, variable.id,
                   variable.kind == VariableKind::Scalar ? "scl" : "arr",
                   scope_text(variable.scope), uses(difo, variable.id, variable.scope),
                   type_text(variable.type));
  }
}

std::string_view name_kind(KernelName::Kind kind) {
  switch (kind) {
    case KernelName::Kind::Symbol: return "symbol";
    case KernelName::Kind::Size: return "sizeof";
    case KernelName::Kind::Member: return "offsetof";
    case KernelName::Kind::BitOffset: return "bitoffset";
    case KernelName::Kind::BitUnit: return "bitunit";
    case KernelName::Kind::BitsAbove: return "bitsabove";
    case KernelName::Kind::BitsUnused: return "bitsunused";
    case KernelName::Kind::Enumerator: return "enumerator";
    case KernelName::Kind::Elements: return "elements";
    case KernelName::Kind::Process: return "process";
  }
  return "???";
}

std::string name_text(const KernelName& name) {
  if (name.kind == KernelName::Kind::Symbol || name.kind == KernelName::Kind::Enumerator) {
    return fmt::format("{}`{}", name.module, name.name);
  }
  return name.path.empty() ? name.name : fmt::format("{}, {}", name.name, name.path);
}

/// The places that bind() fills in, in the columns of the listing's other tables.
void list_relocations(const Difo& difo, const std::vector<KernelName>& names, Output out) {
  if (difo.relocations.empty()) return;
  fmt::format_to(out, "\n{:<16} {:<10} {}\n", "RELOCATION", "KIND", "NAME");
  for (const Relocation& relocation : difo.relocations) {
    const std::string place = relocation.place == Relocation::Place::Result ? "DIFO returns"
                              : relocation.place == Relocation::Place::Variable
                                  ? relocation.index < difo.variables.size()
                                        ? difo.variables[relocation.index].name
                                        : "???"
                                  : fmt::format("DT_INTEGER[{}]", relocation.index);
    if (relocation.name >= names.size()) {
      fmt::format_to(out, "{:<16} ???\n", place);
      continue;
    }
    const KernelName& name = names[relocation.name];
    fmt::format_to(out, "{:<16} {:<10} {}\n", place, name_kind(name.kind), name_text(name));
  }
}

}  // namespace

std::string list_difo(const Difo& difo, const std::vector<KernelName>& names) {
  std::string text;
  const Output out(text);
  fmt::format_to(out, "DIFO returns {}\n{:<3} {:<8}    {}\n", type_text(difo.result), "OFF",
                 "OPCODE", "INSTRUCTION");
  for (std::size_t i = 0; i < difo.text.size(); ++i) {
    const Insn in{difo.text[i]};
    fmt::format_to(out, "{:02}: {:08x}    ", i, in.word);
    if (const auto info = opcode_info(static_cast<std::uint8_t>(in.op()))) {
      const std::string rest = operands(difo, in, info->form);
      if (rest.empty()) {
        fmt::format_to(out, "{}\n", info->text);
      } else {
        fmt::format_to(out, "{:<4} {}\n", info->text, rest);
      }
    } else {
      fmt::format_to(out, "???\n");
    }
  }
  list_variables(difo, out);
  list_relocations(difo, names, out);
  return text;
}

std::string list_program(const Program& program) {
  std::string text;
  const Output out(text);
  for (std::size_t c = 0; c < program.clauses.size(); ++c) {
    const Clause& clause = program.clauses[c];
    std::string probes;
    for (const ProbeDescription& probe : clause.probes) {
      probes += (probes.empty() ? "" : ", ") + probe.to_string();
    }
    if (clause.predicate) {
      fmt::format_to(out, "\nClause {} ({}), predicate: {}", c + 1, probes,
                     list_difo(*clause.predicate, program.kernel_names));
    }
    for (std::size_t a = 0; a < clause.actions.size(); ++a) {
      for (const Difo& difo : clause.actions[a].arguments) {
        fmt::format_to(out, "\nClause {} ({}), action {}: {}", c + 1, probes, a + 1,
                       list_difo(difo, program.kernel_names));
      }
    }
    if (clause.repeat) {
      fmt::format_to(out, "\nClause {} ({}) repeats from clause {}, at most {} times\n", c + 1,
                     probes, clause.repeat->first + std::uint64_t{1}, clause.repeat->limit);
    }
  }
  return text;
}

}  // namespace ringside::dif
