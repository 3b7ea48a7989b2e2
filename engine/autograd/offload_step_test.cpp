#include "engine/autograd/offload_step.h"

#include <gmock/gmock.h>
#include <torch/csrc/autograd/custom_function.h>

#include <functional>

#include "tests/support/command_lists.h"
#include "tests/support/torch_test.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using at::Tensor;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const Policy kKeep = test_policy("keep", std::nullopt, std::nullopt);
const Policy kOffload = test_policy("offload", 0, std::nullopt);
const Policy kTrl = test_policy("trl", 0, 0);

class OffloadStepTest : public TorchTest {
 protected:
  static constexpr Bytes kBytes = 6 * 8 * 8;  ///< of a tensor that `activation` returns

  /// Returns a tensor that is made in the step.
  static Tensor activation(at::ScalarType type = at::kDouble) {
    return at::arange(48, at::TensorOptions(type)).view({6, 8});
  }

  /// Saves `value` in a step of `policy` and returns the reason of its placement.
  PlacementReason reason_under(const Policy& policy, const Tensor& value) {
    const auto step = make_step(policy);
    return reason_in(*step, value);
  }
  static PlacementReason reason_in(OffloadStep& step, const Tensor& value) {
    const Ledger before = step.ledger();
    step.release(step.pack(value));
    for (const auto& [place, entry] : step.ledger())
      if (!before.contains(place) || before.at(place) != entry) return place.reason;
    throw std::logic_error("not in the ledger");
  }
};

// --- Unpacked tensors ---

struct ViewCase {
  const char* name;
  Tensor (*make)(const Tensor&);
  friend std::ostream& operator<<(std::ostream& out, const ViewCase& view) { return out << view.name; }
};

class ViewTest : public OffloadStepTest, public testing::WithParamInterface<ViewCase> {};

TEST_P(ViewTest, ComesBackWithItsValuesSizesStridesAndOffset) {
  const auto step = make_step(kOffload);
  Tensor value = GetParam().make(activation());
  const Tensor expected = value.clone();
  const std::vector<std::int64_t> sizes = value.sizes().vec(), strides = value.strides().vec();
  const std::int64_t offset = value.storage_offset();
  const SavedId tensor = step->pack(value);
  value = Tensor();
  const Tensor back = step->unpack(tensor);
  EXPECT_EQ(back.sizes(), sizes);
  EXPECT_EQ(back.strides(), strides);
  EXPECT_EQ(back.storage_offset(), offset);
  EXPECT_EQ(back.scalar_type(), expected.scalar_type());
  EXPECT_TRUE(bitwise_equal(back, expected));
  EXPECT_EQ(step->d2h_bytes(), step->h2d_bytes());
  step->release(tensor);
}

TEST_P(ViewTest, ComesBackDenseUnderTrl) {
  const auto step = make_step(kTrl);
  Tensor value = GetParam().make(activation());
  const Tensor expected = value.clone();
  const SavedId tensor = step->pack(value);
  value = Tensor();
  step->release(step->pack(activation()));  // evicts it from the stash
  const Tensor back = step->unpack(tensor);
  EXPECT_EQ(back.sizes(), expected.sizes());
  // clone keeps dense strides and makes others dense, as TRL's copy does.
  EXPECT_EQ(back.strides(), expected.strides());
  EXPECT_EQ(back.storage_offset(), 0);
  EXPECT_TRUE(bitwise_equal(back, expected));
  step->backward_end();
  step->release(tensor);
}

const ViewCase kViews[] = {
    {"Whole", [](const Tensor& h) { return h; }},
    {"Transposed", [](const Tensor& h) { return h.t(); }},
    {"Slice", [](const Tensor& h) { return h.slice(1, 1, 8, 3); }},
    {"Row", [](const Tensor& h) { return h.select(0, 4); }},
    {"Expanded",
     [](const Tensor& h) {
       return h.select(1, 0).unsqueeze(1).expand({6, 5});
     }},
    {"ChannelsLast",
     [](const Tensor& h) {
       return h.view({1, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);
     }},
    {"NoDimensions", [](const Tensor& h) { return h.select(0, 3).select(0, 2); }},
    {"BFloat16", [](const Tensor& h) { return h.to(at::kBFloat16).t(); }},
    {"Bool", [](const Tensor& h) { return h > 20; }},
    {"Int64", [](const Tensor& h) { return h.to(at::kLong).narrow(0, 2, 3); }},
    {"Complex", [](const Tensor& h) { return at::complex(h, h + 1).slice(1, 0, 8, 2); }},
    {"Conjugated", [](const Tensor& h) { return at::complex(h, h + 1).conj().slice(1, 0, 8, 2); }},
    {"Negated", [](const Tensor& h) { return at::imag(at::complex(h, h + 1).conj()); }},
};

INSTANTIATE_TEST_SUITE_P(Views, ViewTest, testing::ValuesIn(kViews),
                         [](const auto& view) { return std::string(view.param.name); });

TEST_F(OffloadStepTest, ASecondUnpackReturnsTheSameMemory) {
  const auto step = make_step(kOffload);
  const SavedId tensor = step->pack(activation());
  const Tensor first = step->unpack(tensor), second = step->unpack(tensor);
  EXPECT_EQ(first.const_data_ptr(), second.const_data_ptr());
  EXPECT_EQ(step->h2d_bytes(), kBytes);
  step->release(tensor);
}

// --- One copy per content of a storage ---

TEST_F(OffloadStepTest, SavedTensorsOfOneStorageShareACopy) {
  const auto step = make_step(kOffload);
  const Tensor h = activation();
  const SavedId a = step->pack(h), b = step->pack(h.t()), c = step->pack(h.narrow(0, 1, 2));
  EXPECT_EQ(step->d2h_bytes(), kBytes);
  EXPECT_EQ(step->host_peak_bytes(), kBytes);
  EXPECT_EQ(step->unpack(a).const_data_ptr(), step->unpack(b).const_data_ptr());
  for (const SavedId tensor : {a, b}) step->release(tensor);
  EXPECT_EQ(device_.host_used_bytes(), kBytes);
  step->release(c);
  EXPECT_EQ(device_.host_used_bytes(), 0);
}

TEST_F(OffloadStepTest, ContentWrittenInPlaceGetsASeparateCopy) {
  const auto step = make_step(kOffload);
  Tensor h = activation();
  const SavedId before = step->pack(h);
  h.add_(1);
  const SavedId after = step->pack(h);
  EXPECT_EQ(step->d2h_bytes(), 2 * kBytes);
  EXPECT_TRUE(bitwise_equal(step->unpack(after), activation() + 1));
  step->release(before);
  step->release(after);
}

TEST_F(OffloadStepTest, PiecesWithSeparateVersionCountersGetSeparateCopies) {
  const auto step = make_step(kOffload);
  const std::vector<Tensor> pieces = at::unsafe_chunk(activation(), 2, 1);
  std::vector<SavedId> saved;
  for (Tensor piece : pieces) saved.push_back(step->pack(piece.neg_()));
  for (std::size_t i = 0; i < pieces.size(); ++i)
    EXPECT_TRUE(bitwise_equal(step->unpack(saved[i]), pieces[i]));
  EXPECT_EQ(step->ledger().size(), 1U);
  for (const SavedId tensor : saved) step->release(tensor);
}

TEST_F(OffloadStepTest, RejectsAnUnpackAfterAnInPlaceWrite) {
  for (const Policy& policy : {kKeep, kOffload, kTrl}) {
    const auto step = make_step(policy);
    Tensor h = activation();
    const SavedId tensor = step->pack(h.t());
    const std::string expected = "expected version " + std::to_string(h._version()) + " instead";
    h.zero_();
    EXPECT_THAT(message_of<c10::Error>([&] { step->unpack(tensor); }),
                AllOf(HasSubstr("modified by an inplace operation: [Double [8, 6]]"), HasSubstr(expected)));
    step->release(tensor);
  }
}

// --- Tensors that never move ---

TEST_F(OffloadStepTest, KeepsTensorsOlderThanTheStep) {
  const Tensor old = activation();
  EXPECT_EQ(reason_under(kOffload, old), PlacementReason::kResident);
  EXPECT_EQ(reason_under(kOffload, old.t()), PlacementReason::kResident);
}

TEST_F(OffloadStepTest, KeepsResidentsHoweverTheyAreViewed) {
  const std::pair<StorageRole, PlacementReason> cases[] = {
      {StorageRole::kParameter, PlacementReason::kParameter},
      {StorageRole::kBuffer, PlacementReason::kBuffer},
      {StorageRole::kInput, PlacementReason::kInput}};
  for (const auto& [role, reason] : cases) {
    const Tensor value = activation();
    Residents residents;
    residents.roles = {{*device_.allocation_of(value.storage()), role}};
    residents_ = std::make_shared<const Residents>(residents);
    const auto step = make_step(kOffload);
    for (const Tensor& view : {value, value.t(), value.detach(), value.view({-1}).narrow(0, 7, 5)})
      EXPECT_EQ(reason_in(*step, view), reason);
    EXPECT_EQ(step->d2h_bytes(), 0);
  }
}

/// A node whose backward makes a call.
class CallingNode final : public torch::autograd::Function<CallingNode> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input,
                        const std::function<void()>* call) {
    context->saved_data["call"] = reinterpret_cast<std::int64_t>(call);
    return input.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    (*reinterpret_cast<const std::function<void()>*>(context->saved_data["call"].toInt()))();
    return {gradients[0], Tensor()};
  }
};

/// Makes the call within an autograd node.
void in_backward(const std::function<void()>& call) {
  CallingNode::apply(at::ones({1}).requires_grad_(), &call).sum().backward();
}

TEST_F(OffloadStepTest, KeepsWhatBackwardSavesOfAStorageThatItHasUnpacked) {
  for (const Policy& policy : {kKeep, kOffload, kTrl}) {
    const auto step = make_step(policy);
    const SavedId tensor = step->pack(activation());
    in_backward([&] {
      const Tensor back = step->unpack(tensor);
      const Bytes copied = step->d2h_bytes();
      EXPECT_EQ(reason_in(*step, back), PlacementReason::kUnpacked);
      EXPECT_EQ(reason_in(*step, back.detach().t()), PlacementReason::kUnpacked);
      EXPECT_EQ(step->d2h_bytes(), copied);
      step->release(tensor);
    });
  }
}

TEST_F(OffloadStepTest, KeepsTheStorageItselfToo) {
  const auto step = make_step(kOffload);
  const Tensor value = activation();
  const SavedId tensor = step->pack(value);
  in_backward([&] {
    EXPECT_EQ(reason_in(*step, value), PlacementReason::kSharedCopy);
    step->unpack(tensor);
    EXPECT_EQ(reason_in(*step, value), PlacementReason::kUnpacked);
    step->release(tensor);
  });
}

TEST_F(OffloadStepTest, MovesWhatBackwardMakesAndSaves) {
  const auto step = make_step(kOffload);
  in_backward([&] { EXPECT_EQ(reason_in(*step, activation()), PlacementReason::kOffloaded); });
}

TEST_F(OffloadStepTest, TheNextBackwardSavesOldTensorsAsIfTheyHadNotBeenUnpacked) {
  const Tensor old = activation();
  const auto step = make_step(kOffload);
  in_backward([&] {
    const SavedId tensor = step->pack(old);
    step->unpack(tensor);
    EXPECT_EQ(reason_in(*step, old), PlacementReason::kUnpacked);
    step->backward_end();
    EXPECT_EQ(reason_in(*step, old), PlacementReason::kResident);
    step->release(tensor);
  });
}

TEST_F(OffloadStepTest, KeepsInputsThatAreMadeInTheStepAndTrlMovesThem) {
  for (const auto& [policy, reason] :
       {std::pair(kOffload, PlacementReason::kInput), std::pair(kTrl, PlacementReason::kOffloaded)}) {
    const auto step = make_step(policy);
    const Tensor input = activation(), other = activation();
    step->add_inputs({&input, 1});
    EXPECT_EQ(reason_in(*step, input.t()), reason);
    EXPECT_EQ(reason_in(*step, other), PlacementReason::kOffloaded);
  }
}

TEST_F(OffloadStepTest, AnOutputOfTheModelIsNoInput) {
  const auto step = make_step(kOffload);
  const Tensor output = activation(), detached = output.detach();
  step->add_outputs({&output, 1});
  step->add_inputs({&detached, 1});
  EXPECT_EQ(reason_in(*step, detached), PlacementReason::kOffloaded);
}

TEST_F(OffloadStepTest, BackwardAddsNoInputs) {
  const auto step = make_step(kOffload);
  const Tensor value = activation();
  in_backward([&] {
    step->add_inputs({&value, 1});
    EXPECT_EQ(reason_in(*step, value), PlacementReason::kOffloaded);
  });
}

TEST_F(OffloadStepTest, TrlKeepsAParameterButMovesItsTranspose) {
  const Tensor parameter = activation();
  Residents residents;
  residents.roles = {{*device_.allocation_of(parameter.storage()), StorageRole::kParameter}};
  residents.parameters = {parameter.unsafeGetTensorImpl()};
  residents_ = std::make_shared<const Residents>(residents);
  EXPECT_EQ(reason_under(kTrl, parameter), PlacementReason::kParameter);
  EXPECT_EQ(reason_under(kTrl, parameter.t()), PlacementReason::kOffloaded);
}

TEST_F(OffloadStepTest, KeepsTensorsWithoutPlainStorage) {
  for (const Policy& policy : {kOffload, kTrl}) {
    const auto step = make_step(policy);
    const Tensor sparse = activation().to_sparse(), csr = activation().to_sparse_csr();
    const Tensor quantized = at::quantize_per_tensor(activation(at::kFloat), 0.5, 3, at::kQUInt8);
    for (const Tensor& value : {sparse, csr, quantized})
      EXPECT_EQ(reason_in(*step, value), PlacementReason::kUnsupportedLayout);
  }
}

TEST_F(OffloadStepTest, ReturnsASparseTensorUnchanged) {
  const auto step = make_step(kOffload);
  const Tensor sparse = activation().to_sparse();
  const SavedId tensor = step->pack(sparse);
  EXPECT_TRUE(bitwise_equal(step->unpack(tensor).to_dense(), activation()));
  step->release(tensor);
}

TEST_F(OffloadStepTest, KeepsMemoryThatIsNotTheDevices) {
  const auto step = make_step(kOffload);
  double numbers[4] = {};
  EXPECT_EQ(reason_in(*step, at::from_blob(numbers, {4}, at::kDouble)), PlacementReason::kUnsupportedLayout);
}

TEST_F(OffloadStepTest, KeepsTensorsWithoutBytes) {
  const auto step = make_step(kOffload);
  EXPECT_EQ(reason_in(*step, at::empty({0, 4}, at::kDouble)), PlacementReason::kEmpty);
}

TEST_F(OffloadStepTest, MovesStoragesOfAtLeastTheThreshold) {
  const auto step = make_step(test_policy("offload", kBytes, std::nullopt));
  EXPECT_EQ(reason_in(*step, activation()), PlacementReason::kOffloaded);
  EXPECT_EQ(reason_in(*step, activation().narrow(0, 0, 1)), PlacementReason::kOffloaded);
  EXPECT_EQ(reason_in(*step, at::ones({47}, at::kDouble)), PlacementReason::kBelowThreshold);
}

TEST_F(OffloadStepTest, KeepsEverythingUnderThePolicyKeep) {
  const auto step = make_step(kKeep);
  EXPECT_EQ(reason_in(*step, activation()), PlacementReason::kNothingOffloaded);
}

TEST_F(OffloadStepTest, KeepsTensorsBeyondTheHostCap) {
  Policy policy = kOffload;
  policy.host_memory_bytes = 2 * kBytes;
  const auto step = make_step(policy);
  const SavedId a = step->pack(activation()), b = step->pack(activation());
  EXPECT_EQ(reason_in(*step, activation()), PlacementReason::kHostFull);
  step->release(a);
  EXPECT_EQ(reason_in(*step, activation()), PlacementReason::kOffloaded);
  step->release(b);
  EXPECT_EQ(step->host_peak_bytes(), 2 * kBytes);
}

TEST_F(OffloadStepTest, LedgerSumsToTheSavedBytes) {
  const auto step = make_step(test_policy("offload", 100, std::nullopt));
  const Tensor h = activation();
  for (const Tensor& value : {h, h.narrow(0, 0, 2), at::ones({2}), at::empty({0})})
    step->release(step->pack(value));
  EXPECT_THAT(
      step->ledger(),
      ElementsAre(Pair(LedgerKey{Place::kDevice, PlacementReason::kEmpty}, LedgerEntry{1, 0}),
                  Pair(LedgerKey{Place::kDevice, PlacementReason::kBelowThreshold}, LedgerEntry{1, 8}),
                  Pair(LedgerKey{Place::kHost, PlacementReason::kOffloaded}, LedgerEntry{2, kBytes + 128})));
}

// --- Memory ---

TEST_F(OffloadStepTest, FreesDeviceMemoryAfterOffloadAndAllocatesItForUnpack) {
  const auto step = make_step(kOffload);
  const Bytes before = live_bytes();
  const SavedId tensor = step->pack(activation());
  EXPECT_EQ(live_bytes(), before);
  step->unpack(tensor);
  EXPECT_EQ(live_bytes(), before + kBytes);
  step->release(tensor);
  EXPECT_EQ(live_bytes(), before);
}

TEST_F(OffloadStepTest, StashKeepsItsCountOnTheDevice) {
  const auto step = make_step(test_policy("offload", 0, 2));
  const Bytes before = live_bytes();
  std::vector<SavedId> saved;
  for (int i = 0; i < 5; ++i) saved.push_back(step->pack(activation()));
  EXPECT_EQ(live_bytes(), before + 2 * kBytes);
  for (const SavedId tensor : saved) step->release(tensor);
  EXPECT_EQ(live_bytes(), before);
}

TEST_F(OffloadStepTest, PrefetchFollowsTheRecordedOrder) {
  const auto step = std::make_shared<OffloadStep>(device_, test_policy("offload", 0, std::nullopt, kBytes),
                                                  std::vector<SavedId>{0, 2, 1}, residents_, nullptr);
  std::vector<SavedId> saved;
  for (int i = 0; i < 3; ++i) saved.push_back(step->pack(activation()));
  step->unpack(0);
  std::vector<SavedId> reloaded;
  for (const Command& command : step->commands())
    if (const auto* const copy = std::get_if<CopyIn>(&command)) reloaded.push_back(copy->tensor);
  EXPECT_THAT(reloaded, ElementsAre(0, 2));
  for (const SavedId tensor : saved) step->release(tensor);
}

TEST_F(OffloadStepTest, ReloadBeyondTheCapacityIsOutOfMemory) {
  for (const Policy& policy : {kOffload, kTrl}) {
    const Bytes before = live_bytes();
    {
      const auto step = make_step(policy);
      const SavedId tensor = step->pack(activation());
      step->release(step->pack(activation()));  // evicts it from TRL's stash
      device_.set_capacity(live_bytes() + kBytes - 1);
      EXPECT_THAT(message_of<c10::OutOfMemoryError>([&] { step->unpack(tensor); }),
                  HasSubstr("out of memory: 384 bytes requested"));
      device_.set_capacity(std::nullopt);
      step->release(tensor);
    }
    EXPECT_EQ(live_bytes(), before);
    EXPECT_EQ(device_.host_used_bytes(), 0);
  }
}

TEST_F(OffloadStepTest, ExhaustedHostMemoryIsAnErrorAndLeavesNoMemory) {
  HostDevice small(torch_allocator(), Link{});
  small.set_host_capacity(kBytes);
  const Bytes before = live_bytes();
  {
    OffloadStep step(small, kTrl, {}, residents_, nullptr);  // this policy knows no cap, so the pool refuses
    const SavedId first = step.pack(activation());
    EXPECT_THAT(message_of<Error>([&] { step.pack(activation()); }),
                HasSubstr("host memory for offloaded tensors"));
    step.release(first);
  }
  EXPECT_EQ(live_bytes(), before);
  EXPECT_EQ(small.host_used_bytes(), 0);
}

TEST_F(OffloadStepTest, AGatheredParameterIsUnpackedWithTheDataThatItHasThen) {
  auto residents = std::make_shared<Residents>();
  residents->is_parameter_group = [](const c10::Storage&) { return true; };
  residents_ = residents;
  Tensor parameter = leaf({6, 8}), view = parameter.detach().t();
  const Tensor gathered_first = parameter.detach(), gathered_again = gathered_first.clone();
  const auto step = make_step(kOffload);
  const SavedId whole = step->pack(parameter), part = step->pack(view);
  parameter.set_data(at::empty({0}, at::kDouble));
  view = Tensor();
  parameter.set_data(gathered_again);
  EXPECT_TRUE(step->unpack(whole).is_alias_of(gathered_again));
  EXPECT_TRUE(step->unpack(part).is_alias_of(gathered_first));
  step->release(whole);
  step->release(part);
}

TEST_F(OffloadStepTest, ExecutesTheCommandsOfTheScheduler) {
  const auto step = make_step(kOffload);
  const SavedId tensor = step->pack(activation());
  step->unpack(tensor);
  step->release(tensor);
  EXPECT_THAT(names_of(step->commands()),
              ElementsAre("copy_out", "wait_out", "drop", "copy_in", "wait_in", "drop", "free_host"));
}

}  // namespace
}  // namespace offprof
