#include "tests/properties/case_file.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include "tests/properties/interpreter.h"
#include "tests/properties/options.h"
#include "tests/properties/random_case.h"
#include "tests/support/test_folder.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

TEST(CaseFileTest, ACaseSurvivesARoundTrip) {
  const TestFolder folder;
  const std::string path = folder / "case.json";
  EXPECT_TRUE(rc::check("a case comes back", [&] {
    const RandomCase drawn = *random_case();
    write_file(path, format_case(drawn));
    RC_ASSERT(read_case(path) == drawn);
  }));
}

TEST(CaseFileTest, RejectsAnUnknownOperationWithItsPosition) {
  const TestFolder folder;
  const std::string path = folder / "case.json";
  write_file(
      path,
      R"({"schema": "offprof.random_case/1", "program": [["sin",0,0,0], ["sun",0,0,0]], "policies": []})");
  try {
    read_case(path);
    FAIL() << "the file was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("unknown operation sun"));
  }
}

TEST(CaseFileTest, OperationsHaveDistinctNames) {
  std::set<std::string_view> names;
  for (const Operation& operation : operations())
    EXPECT_TRUE(names.insert(operation.name).second) << operation.name;
}

}  // namespace
}  // namespace offprof
