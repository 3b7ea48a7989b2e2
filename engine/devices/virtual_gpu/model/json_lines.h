#pragma once

#include <map>
#include <string>

namespace offprof {

/// Returns the line, counted from 1, of each key in the nested objects of a JSON text: `memory.bytes` is on
/// line 7. Keys inside arrays are left out. The text must be JSON. Throws Error (input) if an object has a
/// key twice; `name` stands for the text in the error.
std::map<std::string, int> lines_of_keys(const std::string& text, const std::string& name);

}  // namespace offprof
