/* A program with debug information for tests of its reader: dwarf_sample_for_tests.c, and .cc. It
 * knows itself where its members and arguments are, by the compiler that made it.
 * Not linked into the product. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

enum { kMostMembers = 40, kMostArguments = 12, kSavedWords = 6 + 16 };

#define kAnyValue 0xabcdefUL /* of an argument */

struct sample_member {
  const char* name;
  unsigned long bit_offset, bits;
};

/** A structure; ends with a member without a name. */
struct sample_layout {
  const char* function; /* whose first argument points to it */
  unsigned long size;
  struct sample_member members[kMostMembers];
};

struct sample_argument {
  int has_place;
  unsigned long value;
};

/** A function, and a call of its type, which goes to the function that saves what it is passed. */
struct sample_call {
  const char* name;
  void (*run)(void);
  int count;
  struct sample_argument arguments[kMostArguments];
};

/** Of sample_layouts() and sample_calls(), null ends the rows. */
const struct sample_layout* sample_layouts(void);
const struct sample_call* sample_calls(void);
const unsigned long* sample_saved_words(void);

#ifdef __cplusplus
}
#endif

/* Saves what a call passes, whatever the called function's type is. It returns its first argument,
 * as a function does whose result is in memory. */
#define DEFINE_SAVER                                                                        \
  __attribute__((visibility("hidden"))) unsigned long saved_words[kSavedWords];             \
  __attribute__((naked, noinline, used)) static void save_words(void) {                     \
    __asm__(                                                                                \
        "lea saved_words(%rip), %rax\n mov %rdi, (%rax)\n mov %rsi, 8(%rax)\n"              \
        "mov %rdx, 16(%rax)\n mov %rcx, 24(%rax)\n mov %r8, 32(%rax)\n mov %r9, 40(%rax)\n" \
        "xor %r11d, %r11d\n 1: mov 8(%rsp,%r11,8), %r10\n mov %r10, 48(%rax,%r11,8)\n"      \
        "inc %r11\n cmp $16, %r11\n jne 1b\n mov %rdi, %rax\n ret\n");                      \
  }                                                                                         \
  static void (*volatile saver)(void) = save_words;                                         \
  const unsigned long* sample_saved_words(void) {                                           \
    return saved_words;                                                                     \
  }
