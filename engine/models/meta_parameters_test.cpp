#include "engine/models/meta_parameters.h"

#include <gmock/gmock.h>

#include "tests/support/torch_test.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Returns a model with one parameter or buffer.
Model model_with(const at::Tensor& weight, bool is_buffer) {
  Model model;
  model.module = torch::jit::Module("M");
  model.module.register_parameter("weight", weight, is_buffer);
  model.info.name = "m.pt";
  return model;
}

TEST(MetaParameters, AnElementExpandedToAllPlacesIsWeightless) {
  EXPECT_TRUE(has_meta_parameters(at::zeros({1}).expand({4, 8})));
}

TEST(MetaParameters, ATensorWithAllItsElementsIsNotWeightless) {
  EXPECT_FALSE(has_meta_parameters(at::zeros({4, 8})));
  EXPECT_FALSE(has_meta_parameters(at::zeros({8, 4}).t()));
  EXPECT_FALSE(has_meta_parameters(at::zeros({4, 8}).narrow(0, 1, 2)));
  EXPECT_FALSE(has_meta_parameters(at::zeros({})));
  EXPECT_FALSE(has_meta_parameters(at::zeros({0, 8})));
  EXPECT_FALSE(has_meta_parameters(at::Tensor()));
}

TEST(MetaParameters, AModelIsWeightlessIfAnyOfItsParametersOrBuffersIs) {
  const at::Tensor expanded = at::zeros({1}).expand({4, 8});
  EXPECT_TRUE(has_meta_parameters(model_with(expanded, /*is_buffer=*/false)));
  EXPECT_TRUE(has_meta_parameters(model_with(expanded, /*is_buffer=*/true)));
  EXPECT_FALSE(has_meta_parameters(model_with(at::zeros({4, 8}), /*is_buffer=*/false)));
}

TEST(MetaParameters, RejectionNamesTheDeviceThatRunsTheModel) {
  const Model model = model_with(at::zeros({1}).expand({4, 8}), /*is_buffer=*/false);
  EXPECT_EQ(message_of<Error>([&] { refuse_meta_parameters(model); }),
            "m.pt: the model has meta parameters (zoo make --meta), so it runs only on --device virtual");
}

TEST(MetaParameters, AcceptsAModelWithParameters) {
  EXPECT_NO_THROW(refuse_meta_parameters(model_with(at::zeros({4, 8}), /*is_buffer=*/false)));
}

}  // namespace
}  // namespace offprof
