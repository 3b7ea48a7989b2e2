#pragma once

#include <exception>
#include <string>

namespace offprof {

/// LibTorch's reason in a line or two, without its C++ backtrace and without the interpreter's walk through
/// the model. (What an operator throws inside a TorchScript module comes out as a plain std::runtime_error.)
std::string readable_reason(const std::exception& error);

}  // namespace offprof
