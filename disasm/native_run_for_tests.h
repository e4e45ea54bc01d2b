// Runs code of a test on this processor: registers, flags and vector state in, the same out. The
// code ends by a jump to native_run_next or native_run_taken, which note which it was. Not linked
// into the product; x86-64 alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

extern "C" {
/// In x86's numbering; [16] is rflags.
extern std::uint64_t native_run_in[17], native_run_out[17];
/// Where it begins, and where it ended: 1 at native_run_next, 2 at native_run_taken.
extern std::uint64_t native_run_entry, native_run_where;
void native_run();
void native_run_next();
void native_run_taken();

/// In the form of XSAVE (Intel SDM volume 1, 13.4). Features that the header's first
/// word, at kVectorFeatures, does not name are as after a reset.
inline constexpr std::size_t kVectorBytes = 16384, kVectorFeatures = 512;
extern std::array<std::byte, kVectorBytes> native_run_vectors_in, native_run_vectors_out;
}
