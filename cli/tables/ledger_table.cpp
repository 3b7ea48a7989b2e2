#include "cli/tables/ledger_table.h"

#include <algorithm>

#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"

namespace offprof {
namespace {

std::string in_words(std::string_view name) {
  std::string words(name);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

LedgerEntry sum_of(const Ledger& ledger) {
  LedgerEntry sum;
  for (const auto& [key, entry] : ledger) {
    sum.tensors += entry.tensors;
    sum.bytes += entry.bytes;
  }
  return sum;
}

}  // namespace

std::string ledger_table(const Ledger& ledger, const Page& page) {
  const LedgerEntry sum = sum_of(ledger);
  TextTable table({{"saved for backward", Align::kLeft},
                   {"reason", Align::kLeft},
                   {"tensors", Align::kRight},
                   {"bytes", Align::kRight},
                   {"share", Align::kRight}});
  const auto row = [&](const std::string& place, const std::string& reason, const LedgerEntry& entry) {
    table.add_row({place, reason, std::to_string(entry.tensors), format_bytes(entry.bytes),
                   share_text(entry.bytes, sum.bytes)});
  };
  for (const auto& [key, entry] : ledger)
    row(to_string(Placement{key.transform, key.place}), in_words(to_string(key.reason)), entry);
  table.add_rule();
  row("all", "", sum);
  return table.render(page);
}

}  // namespace offprof
