#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace offprof {

/// Writes one Python value as a pickle of protocol 2. Values are written in order; those between a begin and
/// its end are the elements. In a dictionary, keys and values alternate. Texts are stored once.
///
/// It uses few opcodes, because PyTorch's memory visualizer reads only some of them, and appends at most 1000
/// elements at a time, because the visualizer passes them as arguments.
class PickleWriter {
 public:
  PickleWriter();

  void text(std::string_view value);
  void integer(std::int64_t value);
  void boolean(bool value);
  void none();
  void begin_dict();
  void end_dict();
  void begin_list();
  void end_list();
  /// Writes a tuple of two integers.
  void pair(std::int64_t first, std::int64_t second);

  /// Number of a value, by which it can be written again.
  using Memo = std::uint32_t;
  /// Remembers the value that has just been written, for repeat.
  Memo remember();
  /// Writes a remembered value again: Python gets the same object.
  void repeat(Memo value);

  /// Ends the value and returns the pickle.
  std::string take();

 private:
  struct Open {
    bool is_list = false;
    std::size_t elements = 0;  ///< since the last mark
  };

  void begin_value();
  void put_number(std::uint64_t value, std::size_t bytes);

  std::string bytes_;
  std::vector<Open> open_;
  std::unordered_map<std::string, Memo> texts_;
  Memo remembered_ = 0;
};

}  // namespace offprof
