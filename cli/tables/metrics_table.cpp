#include "cli/tables/metrics_table.h"

#include <algorithm>

#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"
#include "traces/base/whole_number.h"

namespace offprof {
namespace {

/// Returns bytes with all digits, since users look for exact equality. In the first column they are also
/// shown rounded, with a unit.
std::string exact_text(const MetricKey& key, const MetricsColumn& column, bool in_words) {
  const std::optional<double> value = key.get(column.metrics);
  if (key.unit == MetricUnit::kNanoseconds && value)
    return duration_text(to_whole(*value), column.times_unsure_by);
  if (key.unit != MetricUnit::kBytes || !value) return figure_text(key.unit, value);
  const std::string bytes = std::to_string(to_whole(*value));
  return in_words ? bytes + " (" + figure_text(key.unit, value) + ")" : bytes;
}

TextTable::Cell agreement(const MetricKey& key, std::optional<double> first, std::optional<double> second) {
  if (!first || !second) return "";
  if (*first == *second) return {"equal", Tone::kGood};
  const Tone tone = key.unit == MetricUnit::kBytes ? Tone::kBad : Tone::kPlain;
  return {difference_text(key.unit, *second - *first) + percent_suffix(*first, *second), tone};
}

}  // namespace

std::string metrics_table(const std::vector<MetricsColumn>& columns, const Page& page) {
  std::vector<TextTable::Column> headings = {{"per step", Align::kLeft}};
  for (const MetricsColumn& column : columns) headings.push_back({column.heading, Align::kRight});
  if (columns.size() == 2) headings.push_back({"", Align::kLeft});
  TextTable table(headings);
  for (const MetricKey& key : metric_keys()) {
    std::vector<TextTable::Cell> cells = {metric_text(key.name)};
    bool any = false;
    for (const MetricsColumn& column : columns) {
      any |= key.get(column.metrics).has_value();
      cells.emplace_back(exact_text(key, column, cells.size() == 1));
    }
    if (columns.size() == 2)
      cells.push_back(agreement(key, key.get(columns[0].metrics), key.get(columns[1].metrics)));
    if (any) table.add_row(cells);
  }
  return table.render(page);
}

}  // namespace offprof
