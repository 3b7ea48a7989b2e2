#include "traces/analysis/fingerprint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/test_folder.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

TEST(Fingerprint, IsThe64BitFnv1aHash) {
  // Test vectors of RFC 9923.
  EXPECT_EQ(fingerprint(""), "cbf29ce484222325");
  EXPECT_EQ(fingerprint("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(fingerprint("foobar"), "85944171f73967e8");
}

TEST(FingerprintOfFile, EqualsTheFingerprintOfTheBytes) {
  const TestFolder folder;
  const std::string path = folder / "file";
  const std::string bytes(3'000'000, '\xff');  // more than one piece
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(fingerprint_of_file(path), fingerprint(bytes));
}

TEST(FingerprintOfFile, RejectsAMissingFile) {
  EXPECT_THROW(fingerprint_of_file(TestFolder() / "no_such_file"), Error);
}

TEST(FingerprintOfFile, RejectsAFolder) {
  EXPECT_THROW(fingerprint_of_file(TestFolder().path()), Error);
}

TEST(FingerprintOfRun, DependsOnModelAndSettingsOfTheStep) {
  ModelInfo model;
  model.fingerprint = "0f";
  RunSettings settings;
  settings.inputs = {"float32[8]"};
  const std::string same = fingerprint_of_run(model, settings);
  EXPECT_EQ(fingerprint_of_run(model, settings), same);

  RunSettings other = settings;
  other.inputs = {"float32[9]"};
  EXPECT_NE(fingerprint_of_run(model, other), same);
  other = settings;
  other.loss = "sum";
  EXPECT_NE(fingerprint_of_run(model, other), same);
  other = settings;
  other.optimizer = "none";
  EXPECT_NE(fingerprint_of_run(model, other), same);
  model.fingerprint = "10";
  EXPECT_NE(fingerprint_of_run(model, settings), same);
}

TEST(FingerprintOfRun, DoesNotDependOnTheNumberOfSteps) {
  const ModelInfo model;
  RunSettings settings;
  const std::string same = fingerprint_of_run(model, settings);
  settings.steps = 100;
  settings.seed = 7;
  EXPECT_EQ(fingerprint_of_run(model, settings), same);
}

SavedTensor saved(TensorLayout layout) {
  SavedTensor tensor;
  tensor.layout = std::move(layout);
  return tensor;
}

TEST(FingerprintOfSaved, HashesDtypesAndSizesInOrder) {
  const std::vector<SavedTensor> tensors = {saved({"float32", {4, 8}, {8, 1}}), saved({"int64", {}, {}})};
  EXPECT_EQ(fingerprint_of_saved(tensors), fingerprint("float32[4, 8]\nint64[]\n"));
}

TEST(FingerprintOfSaved, DoesNotDependOnStrides) {
  const std::vector<SavedTensor> rows = {saved({"float32", {4, 8}, {8, 1}})};
  const std::vector<SavedTensor> columns = {saved({"float32", {4, 8}, {1, 4}})};
  EXPECT_EQ(fingerprint_of_saved(rows), fingerprint_of_saved(columns));
}

}  // namespace
}  // namespace offprof
