// DIF as text, in the shape of dtrace -S: offset, word, instruction, what its index stands for.
#pragma once

#include <string>
#include <vector>

#include "dif/program/program.h"

namespace ringside::dif {

/// One object: "OFF OPCODE      INSTRUCTION", a line for each word, then its variables. Words that
/// are no instructions are shown as such, so that unverified objects can be listed.
/// The places that bind() is to fill in come last, by the program's `names`.
std::string list_difo(const Difo& difo, const std::vector<KernelName>& names = {});
/// Every object of the program, each under a line saying where it belongs.
std::string list_program(const Program& program);

}  // namespace ringside::dif
