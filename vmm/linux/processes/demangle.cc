#include "vmm/linux/processes/demangle.h"

#define HAVE_DECL_BASENAME 1  // else libiberty.h declares it in another way than <cstring>
#include <libiberty/demangle.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kLongestDemangled = 1024;

}  // namespace

std::string demangle(std::string_view name) {
  std::string plain(name);
  const bool is_mangled = name.starts_with("_Z") || name.starts_with("_R");
  if (!is_mangled || name.size() > kLongestDemangled) return plain;
  const std::unique_ptr<char, decltype(&std::free)> made(
      cplus_demangle(plain.c_str(), DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO), &std::free);
  const std::string_view text = made ? std::string_view(made.get()) : std::string_view();
  const bool prints =
      std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f && c != '`'; });
  if (text.empty() || text.size() > kLongestDemangled || !prints) return plain;
  return std::string(text);
}

}  // namespace ringside::guest_linux
