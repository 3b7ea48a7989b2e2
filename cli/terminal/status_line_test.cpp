#include "cli/terminal/status_line.h"

#include <gtest/gtest.h>

#include <sstream>

namespace offprof {
namespace {

TEST(StatusLine, IsSilentWithoutATerminal) {
  std::ostringstream err;
  { StatusLine(err, false, 80).show("working"); }
  EXPECT_EQ(err.str(), "");
}

TEST(StatusLine, ErasesItselfAtTheEnd) {
  std::ostringstream err;
  { StatusLine(err, true, 80).show("working"); }
  EXPECT_EQ(err.str(), "\r\033[Kworking\r\033[K");
}

TEST(StatusLine, NeverFillsTheLineSoThatItCannotWrap) {
  std::ostringstream err;
  { StatusLine(err, true, 5).show("working"); }
  EXPECT_NE(err.str().find("wor…\r"), std::string::npos);
}

}  // namespace
}  // namespace offprof
