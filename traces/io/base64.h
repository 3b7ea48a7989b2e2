#pragma once

#include <string>
#include <string_view>

namespace offprof {

/// Encodes bytes in base64 with padding (RFC 4648, section 4).
std::string to_base64(std::string_view bytes);

}  // namespace offprof
