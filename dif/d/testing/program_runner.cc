#include "dif/d/testing/program_runner.h"

#include <algorithm>

#include "dif/bind/bind.h"
#include "vmm/base/c_type.h"

namespace ringside::d {

FakeKernel::FakeKernel() : first_own_(types_.size()) {
  const auto type = [&](std::string_view name) { return types_.find(name).value_or(TypeId{}); };
  const TypeId integer = type("int"), character = type("char"), word = type("unsigned long");
  const TypeId text = types_.pointer_to(character);
  const TypeId list = types_.add_struct(TypeKind::Struct, "list_head", 16, {});
  types_.index(list);
  const Member inner_members[] = {{"low", type("short"), 0, 0},
                                  {"high", type("unsigned short"), 16, 0}};
  const TypeId inner = types_.add_struct(TypeKind::Struct, "", 4, inner_members);
  const Member file_members[] = {
      {"f_flags", type("unsigned int"), 0, 0}, {"f_mode", type("unsigned char"), 32, 0},
      {"f_small", type("signed char"), 40, 0}, {"f_name", text, 64, 0},
      {"f_pos", type("long"), 128, 0},         {"", inner, 192, 0},
  };
  const TypeId file = types_.add_struct(TypeKind::Struct, "file", 32, file_members);
  types_.index(file);
  const Member task_members[] = {
      {"pid", integer, 0, 0},
      {"state", type("unsigned int"), 32, 3},
      {"balance", integer, 35, 5},
      {"comm", types_.array_of(character, 16), 64, 0},
      {"file", types_.pointer_to(file), 192, 0},
      {"counts", types_.array_of(integer, 4), 256, 0},
      {"total", word, 384, 0},
  };
  task_ = types_.add_struct(TypeKind::Struct, "task_struct", 64, task_members);
  types_.index(task_);
  const Enumerator states[] = {{"TASK_RUNNING", 0}, {"TASK_DEAD", 128}};
  types_.index(types_.add_enum("task_state", 4, true, states));
  types_.index(
      types_.add({.kind = TypeKind::Typedef, .name = "u32", .target = type("unsigned int")}));
  types_.index(types_.add({.kind = TypeKind::Typedef, .name = "hits", .target = integer}));
  types_.index_as(task_, types_.intern(percpu_variable_key("each_cpus")));
  end_own_ = types_.size();
}

std::string FakeKernel::type_module(TypeId id) {
  return id.value >= first_own_ && id.value < end_own_ ? "vmlinux" : "";
}

ProbeSignature FakeKernel::signature(const dif::ProbeDescription& pattern) {
  ProbeSignature result;
  std::size_t matched = 0;
  for_each_signature(pattern, [&](const ProbeSignature& found) {
    if (matched++ == 0) result = found;
    return true;
  });
  result.matched = matched;
  return result;
}

void FakeKernel::for_each_signature(const dif::ProbeDescription& pattern,
                                    const std::function<bool(const ProbeSignature&)>& visit) {
  const dif::ProbeDescription probes[] = {{"dtrace", "", "", "BEGIN"},
                                          {"dtrace", "", "", "END"},
                                          {"fbt", "vmlinux", "vfs_read", "entry"},
                                          {"fbt", "vmlinux", "vfs_read", "return"},
                                          {"io", "", "", "start"},
                                          {"profile", "", "", "tick-1s"}};
  for (const dif::ProbeDescription& probe : probes) {
    if (!dif::matches(pattern, probe)) continue;
    ProbeSignature found;
    found.matched = 1;
    found.first = probe;
    found.has_types = probe.name == "entry" || probe.name == "start";
    if (probe.name == "start") found.translated = {{"struct buf *", 1}};
    if (found.has_types) {
      const TypeId integer = types_.find("int").value_or(TypeId{});
      found.arguments = {types_.find("long").value_or(TypeId{}), types_.pointer_to(task_), integer,
                         types_.pointer_to(types_.find("char").value_or(TypeId{})), task_};
    }
    if (!visit(found)) return;
  }
}

std::optional<KernelVariable> FakeKernel::kernel_variable(std::string_view, std::string_view name) {
  if (name == "number") return KernelVariable{"vmlinux", GuestVirt(kNumber), types_.find("int")};
  if (name == "init_task") return KernelVariable{"vmlinux", GuestVirt(kTask), task_};
  if (name == "each_cpus") return KernelVariable{"vmlinux", GuestVirt(0x1000), std::nullopt};
  if (name == "untyped") return KernelVariable{"vmlinux", GuestVirt(kNumber), std::nullopt};
  return std::nullopt;
}

Result<void, Fault> FakeGuest::Memory::read(GuestVirt at, std::span<std::byte> out) const {
  const std::uint64_t raw = at.raw();
  if (raw < base || raw - base > bytes.size() || out.size() > bytes.size() - (raw - base)) {
    return tl::unexpected<Fault>(Fault{FaultKind::BadAddress, 0, raw});
  }
  std::memcpy(out.data(), bytes.data() + (raw - base), out.size());
  return {};
}

FakeGuest::FakeGuest() {
  kernel_.base = kGuestBase;
  kernel_.bytes.resize(0x1000);
  kernel_.put(kTask, std::int32_t{4711});
  kernel_.put(kTask + 4, std::uint8_t{0b10011'101});  // balance -13, state 5
  kernel_.put(kTask + 8, std::array<char, 16>{"swapper/0"});
  kernel_.put(kTask + 24, kFile);
  kernel_.put(kTask + 32, std::array<std::int32_t, 4>{10, -20, 30, -40});
  kernel_.put(kTask + 48, std::uint64_t{0x8000'0000'0000'0001});
  kernel_.put(kFile, std::uint32_t{0x8000'0001});
  kernel_.put(kFile + 4, std::uint8_t{200});
  kernel_.put(kFile + 5, std::int8_t{-3});
  kernel_.put(kFile + 8, kName);
  kernel_.put(kFile + 16, std::int64_t{-1});
  kernel_.put(kFile + 24, std::int16_t{-2});
  kernel_.put(kFile + 26, std::uint16_t{65535});
  kernel_.put(kName, std::array<char, 6>{"hello"});
  kernel_.put(kNumber, std::int32_t{-7});
  user_.base = kUser;
  user_.bytes.resize(0x1000);
  user_.put(kUser, std::array<char, 10>{"from user"});
  for (const std::uint32_t n : {0U, 1U}) {
    const std::uint64_t at = kUserNode + n * 0x30;
    user_.put(at, -3 + static_cast<std::int32_t>(n));
    user_.put(at + 4, n == 0 ? std::array<char, 8>{"first"} : std::array<char, 8>{"unended"});
    user_.put(at + 12, n == 0 ? 0xadU : 0U);
    user_.put(at + 16, n == 0 ? at + 0x30 : 0);
    user_.put(at + 24, kUser);
    user_.put(at + 32, std::array<std::int32_t, 3>{7, -8, 9});
  }
}

Result<std::uint64_t, Fault> FakeGuest::variable(dif::ContextVariable which) const {
  if (which == dif::ContextVariable::Curthread) return kTask;
  if (which == dif::ContextVariable::Pid) return 4711;
  return 0;
}

Result<std::size_t, Fault> FakeGuest::execname(std::span<char> out) const {
  constexpr std::string_view kText = "workload";
  std::ranges::copy(kText.substr(0, out.size()), out.begin());
  return kText.size();
}

Result<std::uint64_t, Fault> FakeGuest::argument(unsigned n) const {
  constexpr std::uint64_t kUpperJunk = 0x1234'5678'0000'0000;
  const std::uint64_t values[] = {100, kTask, kUpperJunk | 0xffff'fffb, kUser};
  return n < 4 ? values[n] : 0;
}

namespace {

void decode(const dif::EcbInfo& ecb, const dif::Record& record, Outcome& out) {
  for (const dif::RecordField& field : ecb.fields) {
    const auto bytes = record.data.subspan(field.offset, field.size);
    if (field.type.kind == dif::ValueKind::Integer) {
      std::uint64_t value = 0;
      std::memcpy(&value, bytes.data(), bytes.size());
      const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes.size());
      value <<= unused;
      out.values.emplace_back(field.type.is_signed ? static_cast<std::int64_t>(value) >> unused
                                                   : static_cast<std::int64_t>(value >> unused));
    } else {
      // SAFETY: characters may alias any bytes; the length is the span's.
      const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      out.values.emplace_back(text.substr(0, text.find('\0')));
    }
  }
}

}  // namespace

Outcome run(std::string_view source, const CompileOptions& options, int firings) {
  Outcome out;
  FakeKernel kernel;
  auto compiled = compile(source, options, kernel);
  if (!compiled) {
    out.error = render(compiled.error(), false);
    out.tagged = render(compiled.error(), true);
    return out;
  }
  out.program = std::move(compiled->program);
  auto bound = dif::bind(out.program, kernel);
  if (!bound) {
    out.error = "binding: " + bound.error().message;
    return out;
  }
  auto verified = dif::verify_program(std::move(*bound));
  if (!verified) {
    out.error = "verifier: " + verified.error().message;
    return out;
  }
  dif::Engine engine(std::move(*verified), {}, 1);
  const dif::ProbeDescription name{"fbt", "vmlinux", "vfs_read", "entry"};
  for (std::uint32_t i = 0; i < out.program.clauses.size(); ++i)
    engine.enable(i, dif::ProbeId{1}, name);
  const FakeGuest guest;
  constexpr std::uint64_t kBetween = 1'000'000;  // ns: memory cleaned at cleanrate comes back
  for (int i = 0; i < firings; ++i)
    engine.fire(dif::ProbeId{1}, {0, 1000 + static_cast<unsigned>(i) * kBetween, 5}, guest);
  const dif::TraceData trace_data = engine.take_quiescent();
  for (const dif::Record& record : trace_data.records) decode(engine.ecb(record.ecb), record, out);
  out.faults = trace_data.faults;
  out.aggregates = trace_data.aggregates;
  return out;
}

Outcome evaluate(const std::string& expression) {
  return run("fbt::vfs_read:entry { trace(" + expression + "); }");
}

std::string error_of(std::string_view source, const CompileOptions& options) {
  const Outcome out = run(source, options);
  return out.tagged.empty() ? out.error : out.tagged;
}

}  // namespace ringside::d
