#include "tests/properties/case_file.h"

#include <algorithm>
#include <limits>

#include "tests/properties/operations.h"
#include "traces/format/policy_io.h"
#include "traces/io/file.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

constexpr std::string_view kCaseSchema = "offprof.random_case/1";

std::uint8_t op_from_json(const JsonValue& json) {
  const auto all = operations();
  const auto found = std::ranges::find(all, json.as_string(), &Operation::name);
  if (found == all.end()) json.fail("unknown operation " + json.as_string());
  return static_cast<std::uint8_t>(found - all.begin());
}

Instruction instruction_from_json(const JsonValue& json) {
  const auto number = [&](std::size_t index) {
    constexpr int kHighest = std::numeric_limits<std::uint8_t>::max();
    return static_cast<std::uint8_t>(json.element(index).as_integer(0, kHighest));
  };
  return {op_from_json(json.element(0)), number(1), number(2), number(3)};
}

}  // namespace

std::string format_case(const RandomCase& random_case, const std::vector<std::string>& findings) {
  std::string text = "{\"schema\": \"" + std::string(kCaseSchema) + "\",\n \"program\": [";
  const auto line = [&](const nlohmann::ordered_json& json, bool is_first) {
    text += (is_first ? "\n  " : ",\n  ") + dump_json(json, -1);
  };
  for (const Instruction& i : random_case.program)
    line({operation_of(i).name, i.first, i.second, i.number}, &i == random_case.program.data());
  text += "],\n \"policies\": [";
  for (const Policy& policy : random_case.policies)
    line(to_json(policy), &policy == random_case.policies.data());
  return text + "],\n \"findings\": " + dump_json(findings, -1) + "}\n";
}

RandomCase read_case(const std::string& path) {
  const nlohmann::json document = parse_document(read_file(path), path);
  check_schema(document, kCaseSchema, path);
  const JsonValue object(document, path + ": ");
  RandomCase random_case;
  const JsonValue program = object.at("program"), policies = object.at("policies");
  for (std::size_t i = 0; i < program.size(); ++i)
    random_case.program.push_back(instruction_from_json(program.element(i)));
  for (std::size_t i = 0; i < policies.size(); ++i)
    random_case.policies.push_back(policy_from_json(policies.element(i).json(), policies.element(i).where()));
  return random_case;
}

std::ostream& operator<<(std::ostream& out, const RandomCase& random_case) {
  return out << "\n" << format_case(random_case);
}

}  // namespace offprof
