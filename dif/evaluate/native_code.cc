#include "dif/evaluate/native_code.h"

#include <asmjit/x86.h>

#include <bit>
#include <utility>

#include "dif/evaluate/evaluate.h"
#include "dif/evaluate/native_analysis.h"
#include "dif/evaluate/native_emitter.h"

namespace ringside::dif {

namespace x86 = asmjit::x86;

namespace {

/// asmjit tells of errors here; each makes the whole code useless.
class FirstError final : public asmjit::ErrorHandler {
 public:
  void handleError(asmjit::Error, const char* text, asmjit::BaseEmitter*) override {
    if (message.empty()) message = text;
  }
  std::string message;
};

/// Writes the code to pages of its own, and makes them executable instead of writable. Empty: the
/// host does not let us.
std::span<std::byte> make_executable(asmjit::CodeHolder& code) {
  namespace memory = asmjit::VirtMem;
  if (code.flatten() != asmjit::kErrorOk || code.resolveUnresolvedLinks() != asmjit::kErrorOk) {
    return {};
  }
  const std::size_t size = code.codeSize();
  void* at = nullptr;
  if (memory::alloc(&at, size, memory::MemoryFlags::kAccessRW) != asmjit::kErrorOk) return {};
  // SAFETY: the code learns where it will run.
  if (code.relocateToBase(reinterpret_cast<std::uintptr_t>(at)) == asmjit::kErrorOk &&
      code.copyFlattenedData(at, size) == asmjit::kErrorOk &&
      memory::protect(at, size, memory::MemoryFlags::kAccessRX) == asmjit::kErrorOk) {
    return {static_cast<std::byte*>(at), size};
  }
  memory::release(at, size);
  return {};
}

}  // namespace

void NativeCode::compile(const Program& program, const ConstantStrings& constants) {
  const asmjit::CpuInfo& host = asmjit::CpuInfo::host();
  if (host.arch() != asmjit::Arch::kX64) {
    refusal_ = "the host's processor is not an x86-64 one";
    return;
  }
  FirstError error;
  asmjit::CodeHolder holder;
  holder.init(asmjit::Environment::host());
  holder.setErrorHandler(&error);
  x86::Assembler code(&holder);
  std::vector<std::pair<const Difo*, asmjit::Label>> entries;
  std::size_t words = 0;
  for_each_difo(program, [&](const Difo& difo) {
    words += difo.text.size();
    if (difo.text.empty() || words > kMostWords) return;
    const NativeAnalysis known(difo);
    if (!known.compiles) return;
    entries.emplace_back(&difo, code.newLabel());
    NativeEmitter(code, difo, known, constants.of(difo), host.features().x86().hasBMI2())
        .emit(entries.back().second);
  });
  if (entries.empty()) return;
  if (error.message.empty()) memory_ = make_executable(holder);
  if (memory_.empty()) {
    refusal_ = error.message.empty() ? "the host grants no executable memory" : error.message;
    return;
  }
  functions_.assign(std::bit_ceil(2 * entries.size()), {});
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(functions_.size()));
  for (const auto& [difo, label] : entries) add(difo, holder.labelOffset(label));
}

void NativeCode::add(const Difo* difo, std::uint64_t offset) {
  std::size_t at = place_of(difo);
  while (functions_[at].difo != nullptr) at = (at + 1) & (functions_.size() - 1);
  // SAFETY: the code of one object begins here and keeps to the calling convention.
  functions_[at] = {difo, reinterpret_cast<NativeFunction>(memory_.data() + offset)};
}

NativeCode::~NativeCode() {
  if (!memory_.empty()) asmjit::VirtMem::release(memory_.data(), memory_.size());
}

}  // namespace ringside::dif
