#include "cli/plugin/engine_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/test_folder.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(const std::vector<std::string>& places) {
  try {
    load_engine(places);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    return std::string(error.what()) + "\n" + error.hint();
  }
  return "no error";
}

TEST(EngineLoader, LooksBesideTheProgramAndInTheInstallation) {
  EXPECT_THAT(engine_places("/opt/offprof/bin"),
              testing::ElementsAre("/opt/offprof/bin/liboffprof_engine.so",
                                   "/opt/offprof/lib/offprof/liboffprof_engine.so",
                                   "/opt/offprof/liboffprof_engine.so"));
}

TEST(EngineLoader, ReportsTheSmallFlavourWithoutTheLibrary) {
  EXPECT_THAT(
      error_of({"/nonexistent/liboffprof_engine.so"}),
      AllOf(HasSubstr("has no engine"), HasSubstr("scripts/setup.sh"), HasSubstr("--preset release")));
}

TEST(EngineLoader, ReportsWhyALibraryCannotBeOpened) {
  const TestFolder folder;
  const std::string path = folder / "broken_engine.so";
  std::ofstream(path) << std::string(1000, 'x');
  EXPECT_THAT(error_of({path}), AllOf(HasSubstr("invalid ELF header"), HasSubstr("offprof doctor")));
}

TEST(EngineLoader, RejectsALibraryWithoutTheSymbol) {
  EXPECT_THAT(error_of({OFFPROF_NO_ENGINE}), HasSubstr("has no symbol offprof_engine_plugin"));
}

TEST(EngineLoader, OpensTheFirstLibraryThatExists) {
  EXPECT_EQ(load_engine({"/nonexistent/engine.so", OFFPROF_FAKE_ENGINE}).torch_version(), "fake");
}

TEST(EngineLoader, CatchesErrorsThrownByTheLibrary) {
  EnginePlugin& engine = load_engine({OFFPROF_FAKE_ENGINE});
  EXPECT_THROW(engine.run({}, {}), Error);
}

}  // namespace
}  // namespace offprof
