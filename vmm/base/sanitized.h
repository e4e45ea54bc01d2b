// Whether this is built with the address sanitizer, which uses memory and system calls of its own.
// GCC and clang tell it in different ways.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define RINGSIDE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RINGSIDE_SANITIZED 1
#endif
#endif
