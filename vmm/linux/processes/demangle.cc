#include "vmm/linux/processes/demangle.h"

#define HAVE_DECL_BASENAME 1  // else libiberty.h declares it in another way than <cstring>
#include <libiberty/demangle.h>

#include <algorithm>
#include <cstddef>

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kLongestDemangled = 1024;

struct TooLong {};

/// A short name may stand for gigabytes, so the demangler is stopped where it has said enough: it
/// keeps all that it needs on its stack.
void append_piece(const char* text, std::size_t size, void* to) {
  auto& made = *static_cast<std::string*>(to);
  if (size > kLongestDemangled - made.size()) throw TooLong();
  made.append(text, size);
}

bool demangle_into(std::string& made, const std::string& name) {
  try {
    // Rust's older names are C++'s, with a hash at their end.
    if (rust_demangle_callback(name.c_str(), 0, append_piece, &made) != 0) return true;
    made.clear();
    return cplus_demangle_v3_callback(name.c_str(), DMGL_PARAMS | DMGL_ANSI, append_piece, &made) !=
           0;
  } catch (const TooLong&) {
    return false;
  }
}

}  // namespace

std::string demangle(std::string_view name) {
  std::string plain(name);
  const bool is_mangled = name.starts_with("_Z") || name.starts_with("_R");
  if (!is_mangled || name.size() > kLongestDemangled) return plain;
  std::string made;
  const bool prints = demangle_into(made, plain) && std::ranges::all_of(made, [](char c) {
                        return c >= ' ' && c < 0x7f && c != '`';
                      });
  return prints && !made.empty() ? made : plain;
}

}  // namespace ringside::guest_linux
