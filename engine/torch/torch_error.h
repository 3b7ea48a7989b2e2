#pragma once

#include <exception>
#include <string>

namespace offprof {

/// Returns LibTorch's reason in a line or two, without its C++ backtrace and without the interpreter's stack
/// of the model. (The interpreter turns an exception of an operator inside a TorchScript module into a plain
/// std::runtime_error.)
std::string readable_reason(const std::exception& error);

}  // namespace offprof
