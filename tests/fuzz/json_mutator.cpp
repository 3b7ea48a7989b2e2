// Mutates JSON inputs for libFuzzer. Half of the time it replaces, removes, repeats or copies a value, so
// that the result is still JSON. Otherwise it changes bytes, as for other inputs.
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed);

namespace {

using Json = nlohmann::ordered_json;

/// Limit on the nesting, since the writer is recursive.
constexpr int kMostDepth = 300;

/// Values that often break readers.
const std::vector<Json>& hostile_values() {
  static const std::vector<Json> kValues = {nullptr,
                                            true,
                                            false,
                                            "",
                                            "\x1b[2J\n",
                                            "\u202e",
                                            "host",
                                            0,
                                            1,
                                            -1,
                                            2,
                                            7,
                                            1e308,
                                            -1e-308,
                                            0.5,
                                            9223372036854775807LL,
                                            9223372036854775808ULL,
                                            18446744073709551615ULL,
                                            -9223372036854775807LL - 1,
                                            2147483647,
                                            2147483648LL,
                                            4294967296LL,
                                            576460752303423488LL,
                                            1LL << 53,
                                            Json::array(),
                                            Json::object(),
                                            Json::array({-1}),
                                            Json::array({Json::array({1, 2})})};
  return kValues;
}

class JsonMutator {
 public:
  JsonMutator(Json& root, unsigned seed) : random_(seed) { collect(root); }

  void mutate() {
    Json& value = any();
    switch (random_() % 6) {
      case 0:
        value = hostile_values()[random_() % hostile_values().size()];
        return;
      case 1:
        value = Json(any());
        return;
      case 2:
        return shift(value);
      case 3:
        return leave_one_out(value);
      case 4:
        return repeat_one(value);
      default:
        return change_text(value);
    }
  }

 private:
  void collect(Json& value) {
    values_.push_back(&value);
    if (!value.is_structured()) return;
    for (Json& element : value) collect(element);
  }
  Json& any() { return *values_[random_() % values_.size()]; }

  void shift(Json& value) {
    const int by = static_cast<int>(random_() % 5) - 2;
    if (value.is_number_unsigned()) value = value.get<std::uint64_t>() + static_cast<std::uint64_t>(by);
    if (value.is_boolean()) value = !value.get<bool>();
  }
  void leave_one_out(Json& value) {
    if (value.is_structured() && !value.empty())
      value.erase(std::next(value.begin(), static_cast<std::ptrdiff_t>(random_() % value.size())));
  }
  void repeat_one(Json& value) {
    if (value.is_array() && !value.empty()) value.push_back(Json(value[random_() % value.size()]));
  }
  void change_text(Json& value) {
    if (!value.is_string() || value.get_ref<std::string&>().empty()) return;
    auto& text = value.get_ref<std::string&>();
    text[random_() % text.size()] = text[random_() % text.size()];
    if (random_() % 4 == 0) text.pop_back();
    if (random_() % 4 == 0) text += text.substr(random_() % (text.size() + 1));
  }

  std::minstd_rand random_;
  std::vector<Json*> values_;
};

bool is_shallow(int depth, Json::parse_event_t, Json&) {
  return depth < kMostDepth;
}

}  // namespace

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  Json json = Json::parse(data, data + size, is_shallow, false);
  if (json.is_dropped_for_recompute()) return LLVMFuzzerMutate(data, size, most);
  JsonMutator mutator(json, seed);
  mutator.mutate();
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
  text.copy(reinterpret_cast<char*>(data), text.size());
  return text.size();
}
