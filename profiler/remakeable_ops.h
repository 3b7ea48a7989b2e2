#pragma once

#include <string_view>

namespace offprof {

/// Whether the operator, as `aten::gelu`, gives the same bits for the same input wherever and whenever it
/// runs on one device, and is cheap beside those that multiply matrices. None draws random numbers, and none
/// but those that say so in their schema changes or returns what it is given.
bool is_remakeable(std::string_view op);

}  // namespace offprof
