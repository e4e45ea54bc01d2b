// How large a task's kernel stack is (THREAD_SIZE).
#pragma once

#include <cstdint>

#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// Bytes, whole pages: by the first task's, else what it is without KASAN.
std::uint64_t kernel_stack_bytes(const SymbolTable& symbols);

}  // namespace ringside::guest_linux
