#include "cli/terminal/text_table.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TextTable two_columns() {
  return TextTable({{"name", Align::kLeft}, {"bytes", Align::kRight}});
}

TEST(TextTable, AlignsNumbersRightAndWordsLeft) {
  TextTable table = two_columns();
  table.add_row({"a", "1"});
  table.add_row({"longer", "1000000"});
  EXPECT_EQ(table.render({}),
            "  name      bytes\n"
            "  ──────  ───────\n"
            "  a             1\n"
            "  longer  1000000\n");
}

TEST(TextTable, CutsTheWidestTextColumnToFitThePage) {
  TextTable table({{"short", Align::kLeft}, {"long", Align::kLeft}, {"n", Align::kRight}});
  table.add_row({"abc", "aten::scaled_dot_product_attention", "12345"});
  EXPECT_EQ(table.render({.width = 36}),
            "  short  long                      n\n"
            "  ─────  ────────────────────  ─────\n"
            "  abc    aten::scaled_dot_pr…  12345\n");
}

TEST(TextTable, NeverCutsNumbers) {
  TextTable table = two_columns();
  table.add_row({"a name that is long", "123456789"});
  EXPECT_NE(table.render({.width = 10}).find("123456789"), std::string::npos);
}

TEST(TextTable, DrawsARule) {
  TextTable table = two_columns();
  table.add_row({"a", "1"});
  table.add_rule();
  table.add_row({"all", "1"});
  EXPECT_NE(table.render({}).find("a         1\n  ────  ─────\n  all"), std::string::npos);
}

TEST(TextTable, OmitsTheHeadingLineIfAllHeadingsAreEmpty) {
  TextTable table({{"", Align::kLeft}, {"", Align::kRight}});
  table.add_row({"a", "1"});
  EXPECT_EQ(table.render({}), "  a  1\n");
}

TEST(TextTable, ColoursDoNotCountAsWidth) {
  TextTable table({{"", Align::kLeft}, {"", Align::kLeft}});
  table.add_row({{"ok", Tone::kGood}, "x"});
  table.add_row({"FAILED", "x"});
  EXPECT_EQ(table.render({.width = 80, .color = true}), "  \033[32mok\033[0m      x\n  FAILED  x\n");
}

}  // namespace
}  // namespace offprof
