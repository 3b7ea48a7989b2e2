// Runs the example of docs/internals/offloaded-tensors.md, and checks that the page shows it unchanged.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <sstream>

#include "engine/tensors/files/safetensors_writer.h"
#include "engine/tensors/offloaded_tensor.h"
#include "engine/tensors/tensor_store.h"
#include "tests/support/folder_test.h"
#include "tests/support/torch_test.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

// example: begin
/// Divides each weight of a checkpoint by its largest number, one in memory at a time.
void scale_weights(const std::string& checkpoint, const std::string& folder) {
  const TensorStore store(checkpoint);                // reads headers only
  const auto scaled = OffloadFolder::open(folder);    // ours, until the last tensor in it goes
  for (const auto& [name, info] : store.tensors()) {  // info: dtype, sizes, bytes, file
    OffloadedTensor weight(store.get(name), name, scaled);
    const at::Tensor largest = weight.with([](const at::Tensor& value) { return value.abs().max(); });
    weight.update_values(weight.load() / largest);  // the old value, or the new one, whatever happens
  }
}
// example: end

class ExampleTest : public FolderTest {};

TEST_F(ExampleTest, Runs) {
  torch_allocator();
  SafetensorsWriter writer(in_folder("m.safetensors"), {{"a/b", TensorDtype::kF32, {2}}});
  const at::Tensor tensor = at::tensor({1.0F, -4.0F});
  writer.write({static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()});
  writer.finish();
  scale_weights(in_folder("m.safetensors"), in_folder("scaled"));
  const OffloadedTensor scaled = OffloadedTensor::open("a/b", OffloadFolder::open(in_folder("scaled")));
  EXPECT_TRUE(scaled.load().equal(at::tensor({0.25F, -1.0F})));
}

TEST_F(ExampleTest, IsUnchangedInTheDocumentation) {
  std::istringstream source(read_file(OFFPROF_DOCS_DIR "/../engine/tensors/example_test.cpp"));
  std::string example;
  bool is_within = false;
  for (std::string line; std::getline(source, line);) {
    if (line == "// example: end") is_within = false;
    if (is_within) example += line + "\n";
    if (line == "// example: begin") is_within = true;
  }
  EXPECT_THAT(read_file(OFFPROF_DOCS_DIR "/internals/offloaded-tensors.md"),
              ::testing::HasSubstr("```cpp\n" + example + "```\n"));
}

}  // namespace
}  // namespace offprof
