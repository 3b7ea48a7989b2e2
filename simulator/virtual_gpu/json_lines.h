#pragma once

#include <map>
#include <string>

namespace offprof {

/// The line, counted from 1, of each key within the nested objects of a JSON text: `memory.bytes` stands on
/// line 7. What lies within arrays is left out. The text must be JSON. Throws Error (input) where an object
/// has a key twice; `name` stands for the text in it.
std::map<std::string, int> lines_of_keys(const std::string& text, const std::string& name);

}  // namespace offprof
