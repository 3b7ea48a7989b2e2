#include <fmt/format.h>
#include <fmt/ranges.h>

#include <pugixml.hpp>
#include <sstream>

#include "cli/gate/gate_report.h"
#include "traces/base/printable.h"

namespace offprof {
namespace {

/// Sets an attribute. XML has no control characters, not even escaped ones.
void set(pugi::xml_node& node, const char* name, const std::string& value) {
  node.append_attribute(name).set_value(printable(value, true).c_str());
}

void set_counts(pugi::xml_node& node, std::size_t tests, std::size_t failures) {
  node.append_attribute("tests").set_value(static_cast<unsigned long long>(tests));
  node.append_attribute("failures").set_value(static_cast<unsigned long long>(failures));
  node.append_attribute("errors").set_value(0);
  node.append_attribute("skipped").set_value(0);
}

void add_case(pugi::xml_node& suite, const GateReport& report, const Check& check) {
  pugi::xml_node test = suite.append_child("testcase");
  set(test, "classname", title_of(report));
  set(test, "name", check.key + " " + check.limit);
  test.append_attribute("time").set_value("0");
  if (check.ok) return;
  pugi::xml_node failure = test.append_child("failure");
  set(failure, "message", sentence_of(check));
  set(failure, "type", "limit");
  std::string text = sentence_of(check);
  if (const std::string growth = growth_text(report); !growth.empty() && check.unit == MetricUnit::kBytes)
    text += "\n" + growth;
  failure.text().set(printable(text, true).c_str());
}

void add_suite(pugi::xml_node& root, const GateReport& report) {
  pugi::xml_node suite = root.append_child("testsuite");
  set(suite, "name", title_of(report));
  set_counts(suite, report.verdict.checks.size(), failures_of(report.verdict));
  suite.append_attribute("time").set_value("0");
  for (const Check& check : report.verdict.checks) add_case(suite, report, check);
  if (report.verdict.notes.empty()) return;
  const std::string notes = fmt::format("{}", fmt::join(report.verdict.notes, "\n"));
  suite.append_child("system-out").text().set(printable(notes, true).c_str());
}

}  // namespace

std::string to_junit(const GateSuite& suite) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version").set_value("1.0");
  declaration.append_attribute("encoding").set_value("UTF-8");
  pugi::xml_node root = document.append_child("testsuites");
  set(root, "name", "offprof gate");
  std::size_t tests = 0, failures = 0;
  for (const GateReport& gate : suite.gates) {
    tests += gate.verdict.checks.size();
    failures += failures_of(gate.verdict);
  }
  set_counts(root, tests, failures);
  root.append_attribute("time").set_value("0");
  for (const GateReport& gate : suite.gates) add_suite(root, gate);
  std::ostringstream text;
  document.save(text, "  ", pugi::format_default, pugi::encoding_utf8);
  return text.str();
}

}  // namespace offprof
