// CHECK: a rule of our own code that must hold; aborts with its text, in every build.
// Never for anything that a guest, a file or a user can influence. Fire context: yes.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                                         \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      std::fprintf(stderr, "%s:%d: internal rule broken: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                              \
    }                                                                                            \
  } while (false)
