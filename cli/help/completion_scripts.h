#pragma once

#include <string_view>

namespace offprof {

enum class Shell { kBash, kZsh, kFish };

/// Returns the script with which the shell completes command lines of offprof. It asks the program itself for
/// candidates: see kCompleteWord in completion.h.
std::string_view completion_script(Shell shell);

}  // namespace offprof
