#include "engine/models/weightless.h"

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

TEST(Weightless, AnElementExpandedToAllPlacesIsWeightless) {
  EXPECT_TRUE(is_weightless(at::zeros({1}).expand({4, 8})));
}

TEST(Weightless, ATensorWithAllItsElementsIsNotWeightless) {
  EXPECT_FALSE(is_weightless(at::zeros({4, 8})));
  EXPECT_FALSE(is_weightless(at::zeros({8, 4}).t()));
  EXPECT_FALSE(is_weightless(at::zeros({4, 8}).narrow(0, 1, 2)));
  EXPECT_FALSE(is_weightless(at::zeros({})));
  EXPECT_FALSE(is_weightless(at::zeros({0, 8})));
  EXPECT_FALSE(is_weightless(at::Tensor()));
}

TEST(Weightless, AModelIsWeightlessIfAnyOfItsParametersOrBuffersIs) {
  const at::Tensor expanded = at::zeros({1}).expand({4, 8});
  EXPECT_TRUE(is_weightless(model_with(expanded, /*is_buffer=*/false)));
  EXPECT_TRUE(is_weightless(model_with(expanded, /*is_buffer=*/true)));
  EXPECT_FALSE(is_weightless(model_with(at::zeros({4, 8}), /*is_buffer=*/false)));
}

TEST(Weightless, RejectionNamesTheDeviceThatRunsTheModel) {
  const Model model = model_with(at::zeros({1}).expand({4, 8}), /*is_buffer=*/false);
  EXPECT_EQ(message_of<Error>([&] { refuse_weightless(model); }),
            "m.pt: its weights take no room (zoo make --meta): it runs on --device virtual only");
}

TEST(Weightless, AcceptsAModelWithParameters) {
  EXPECT_NO_THROW(refuse_weightless(model_with(at::zeros({4, 8}), /*is_buffer=*/false)));
}

}  // namespace
}  // namespace offprof
