#pragma once

#include <cstddef>
#include <string>

/// Values in Python's pickle format, for tests.
namespace offprof::pickle_text {

/// Returns an opcode and the byte that follows it.
inline std::string with_byte(char opcode, std::size_t byte) {
  return {opcode, static_cast<char>(byte)};
}
inline std::string text(const std::string& value) {
  return with_byte('\x8c', value.size()).append(value);
}
inline std::string integer(std::size_t value) {
  return with_byte('K', value);
}
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string tuple(const std::string& items) {
  return "(" + items + "t";
}
inline std::string storage(const std::string& type, const std::string& key) {
  return tuple(text("storage") + global("torch", type) + text(key) + text("cpu") + integer(6)) + "Q";
}
inline std::string ordered_dict() {
  return global("collections", "OrderedDict") + ")R";
}
inline std::string sizes(std::size_t a, std::size_t b) {
  return tuple(integer(a) + integer(b));
}
inline std::string tensor_v2(const std::string& of_storage) {
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple(of_storage + integer(1) + sizes(2, 3) + sizes(3, 1) + "\x89" + ordered_dict()) + "R";
}
inline std::string dict(const std::string& items) {
  return "}(" + items + "u";
}
inline std::string pickle(const std::string& value) {
  return "\x80\x02" + value + ".";
}

}  // namespace offprof::pickle_text
