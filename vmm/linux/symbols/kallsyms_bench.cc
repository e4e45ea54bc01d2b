// How long it takes to decode a symbol table of the size of a distribution kernel's, and to make
// it searchable.
#include <benchmark/benchmark.h>

#include "vmm/linux/fakes_for_tests.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kText = 0xffff'ffff'8100'0000;

fakes::EncodedKallsyms kernel_sized(std::size_t count) {
  std::vector<fakes::NamedAddress> symbols = {{kText, 'T', "_stext"}};
  for (std::uint64_t i = 1; i < count; ++i) {
    symbols.push_back({kText + i * 64, 't', "some_function_name_" + std::to_string(i)});
  }
  const fakes::KallsymsForm form{AddressEncoding::AbsolutePercpu, true, true};
  return fakes::KallsymsWriter(std::move(symbols), form, kText + (1ULL << 28)).write();
}

void decode(benchmark::State& state) {
  const auto encoded = kernel_sized(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    auto decoded = decode_kallsyms(encoded.view(), encoded.keys, GuestVirt(kText));
    benchmark::DoNotOptimize(decoded);
  }
}
BENCHMARK(decode)->Arg(87'000)->Arg(154'000)->Unit(benchmark::kMillisecond);

void seal(benchmark::State& state) {
  const auto encoded = kernel_sized(static_cast<std::size_t>(state.range(0)));
  const auto decoded = decode_kallsyms(encoded.view(), encoded.keys, GuestVirt(kText));
  for (auto _ : state) {
    SymbolTable table;
    table.adopt(decoded->names);
    table.add_module({.name = "vmlinux", .text_base = GuestVirt(kText)}, decoded->symbols);
    table.seal();
    benchmark::DoNotOptimize(table.find("_stext"));
  }
}
BENCHMARK(seal)->Arg(87'000)->Arg(154'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ringside::guest_linux

BENCHMARK_MAIN();
