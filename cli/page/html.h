#pragma once

#include <map>
#include <string>
#include <string_view>

namespace offprof {

/// Replaces the characters that have a meaning in HTML, inside and outside of attributes.
std::string escape_html(std::string_view text);

/// Returns the template with each placeholder `{name}` replaced by the part of that name. Braces around
/// anything but the name of a part stay.
std::string fill_template(std::string_view text,
                          const std::map<std::string, std::string, std::less<>>& parts);

}  // namespace offprof
