#include "traces/io/compact_array.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

#include "traces/base/error.h"
#include "traces/io/document_builder.h"
#include "traces/io/json_access.h"
#include "traces/io/json_parser.h"

namespace offprof {
namespace {

using nlohmann::json;

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

JsonDocument document_of(const std::string& text) {
  TextSource source(text);
  return parse_trace_document(source, "t.json");
}

/// Returns everything that JsonValue reads of a value.
json seen(const JsonValue& value) {
  if (value.json().is_object()) {
    json object = json::object();
    for (const auto& [key, member] : value.json().items())
      object[key] = member.is_null() ? json() : seen(value.at(key));
    return object;
  }
  if (!value.json().is_array() && !value.json().is_binary()) return value.json();
  json array = json::array();
  for (std::size_t i = 0; i < value.size(); ++i) array.push_back(seen(value.element(i)));
  return array;
}

json read_back(const json& value) {
  JsonDocument document = document_of(json{{"program", {{"x", value}}}}.dump());
  const auto x = JsonValue(document, "t.json: ").at("program").find("x");
  return x ? seen(*x) : json();
}

std::size_t compact_arrays_of(const json& value) {
  return document_of(json{{"program", {{"x", value}}}}.dump()).compact.size();
}

TEST(CompactIntegers, ReturnTheStoredNumbers) {
  CompactIntegers compact;
  std::mt19937_64 random(7);
  std::vector<std::int64_t> values = {0, -1, 127, -128, 128, 32'767, -32'769, 1LL << 31, kMin, kMax, 5};
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<std::int64_t>(random() >> random() % 64));
  for (const std::int64_t value : values) compact.push_back(value);
  ASSERT_EQ(compact.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(compact[i], values[i]) << i;
}

TEST(CompactArray, ReadsLikeTheArrayThatItReplaces) {
  for (const char* text :
       {"[]", "[1, 2, 3]", "[-5, 9223372036854775807, -9223372036854775808]", "[[1, 2], [3, 4]]",
        R"([[1, "a", true, null, 1.5, [1, 2], []], [2, "b", false, null, 2.5, [], [7]]])"}) {
    EXPECT_EQ(read_back(json::parse(text)), json::parse(text)) << text;
    EXPECT_EQ(compact_arrays_of(json::parse(text)), 1U) << text;
  }
}

TEST(CompactArray, ReadsUnpackableArraysUnchanged) {
  for (const char* text :
       {R"(["a", 1])", R"([1, 2, "a"])", R"([1, 2, {"a": 1}])", "[1, 18446744073709551615]", "[1, 1.5]",
        "[[1, 2], [3]]", "[[1], 2]", R"([[1, 2], {"a": [1, 2]}, [3]])", R"([[1, "a"], ["a", 1]])",
        R"([[1, [2, [3, [4]]]], [5, [6]]])", R"([[1, [2, {"a": []}], 3], 4])", "[[], [], []]",
        R"([[1, ["a", "b"]]])", "[[18446744073709551615, 1]]", "[null, [1]]", "[{}, {}]"}) {
    EXPECT_EQ(read_back(json::parse(text)), json::parse(text)) << text;
  }
}

TEST(CompactArray, DoesNotPackLongRows) {
  const json rows = json::array({std::vector<int>(5000, 1), std::vector<int>(5000, 2)});
  EXPECT_EQ(read_back(rows), rows);
}

TEST(CompactArray, ReadsRandomDocumentsUnchanged) {
  std::mt19937_64 random(20'261'121);
  const std::function<json(int)> make = [&](int depth) -> json {
    switch (random() % (depth > 3 ? 5 : 8)) {
      case 0:
        return static_cast<std::int64_t>(random());
      case 1:
        return random() % 100;
      case 2:
        return "text " + std::to_string(random() % 3);
      case 3:
        return random() % 2 == 0;
      case 4:
        return nullptr;
      case 5:
        return json{{"a", make(depth + 1)}, {"b", make(depth + 1)}};
      default: {
        json array = json::array();
        const bool alike = random() % 2 == 0;
        const json first = make(depth + 1);
        for (auto i = random() % 5; i > 0; --i) array.push_back(alike ? first : make(depth + 1));
        return array;
      }
    }
  };
  for (int i = 0; i < 2000; ++i) {
    const json value = make(0);
    EXPECT_EQ(read_back(value), value) << value.dump();
  }
}

TEST(CompactArray, PacksOnlyStepPrograms) {
  const JsonDocument document =
      document_of(R"({"policy": {"ids": [1, 2, 3]}, "program": {"ids": [1, 2, 3]}})");
  EXPECT_TRUE(document.root["policy"]["ids"].is_array());
  EXPECT_EQ(document.compact.size(), 1U);
}

TEST(CompactArray, IsCalledAnArrayInErrors) {
  JsonDocument document = document_of(R"({"program": {"ids": [1, 2, -3]}})");
  const JsonValue ids = JsonValue(document, "t.json: ").at("program").at("ids");
  const auto error_of = [](const auto& read) -> std::string {
    try {
      read();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of([&] { ids.as_string(); }), "t.json: program.ids: expected a string, found an array");
  EXPECT_EQ(error_of([&] { ids.as_integer(); }), "t.json: program.ids: an array is not a whole number");
  EXPECT_EQ(error_of([&] { ids.as_integers(); }), "t.json: program.ids[2]: -3 is negative");
  EXPECT_EQ(error_of([&] { ids.element(3); }), "t.json: program.ids: has 3 elements, expected at least 4");
}

}  // namespace
}  // namespace offprof
