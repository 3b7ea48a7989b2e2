#include "engine/tensors/files/checkpoint_pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/tensors/files/pickle_text.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::string_literals;
using namespace pickle_text;

PickledTensors read(const std::string& value) {
  return read_checkpoint_pickle(pickle(value), "m.pt");
}

std::string refusal_of_pickle(const std::string& bytes) {
  try {
    read_checkpoint_pickle(bytes, "m.pt");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), ::testing::StartsWith("m.pt: "));
    EXPECT_NE(error.hint(), "");
    return error.what();
  }
  return "no error";
}
std::string refusal(const std::string& value) {
  return refusal_of_pickle(pickle(value));
}

TEST(CheckpointPickle, ReadsAStateDict) {
  const auto tensors =
      read(ordered_dict() + "(" + text("fc.weight") + tensor_v2(storage("FloatStorage", "7")) + "u}" +
           text("_metadata") + ordered_dict() + "sb");
  ASSERT_EQ(tensors.size(), 1U);
  const PickledTensor& tensor = tensors.at("fc.weight");
  EXPECT_EQ(tensor.storage, "7");
  EXPECT_EQ(tensor.dtype, "float32");
  EXPECT_EQ(tensor.offset, 1);
  EXPECT_THAT(tensor.sizes, ElementsAre(2, 3));
  EXPECT_THAT(tensor.strides, ElementsAre(3, 1));
}

TEST(CheckpointPickle, ReadsNewerDtypesAndParameters) {
  const std::string tensor = global("torch._utils", "_rebuild_tensor_v3") +
                             tuple(storage("UntypedStorage", "0") + integer(0) + sizes(2, 3) + sizes(3, 1) +
                                   "\x89" + ordered_dict() + global("torch", "float8_e4m3fn")) +
                             "R";
  const std::string parameter =
      global("torch._utils", "_rebuild_parameter") + tuple(tensor + "\x88" + ordered_dict()) + "R";
  EXPECT_EQ(read(dict(text("a") + parameter)).at("a").dtype, "float8_e4m3fn");
}

TEST(CheckpointPickle, NamesNestedTensorsByKeysAndPositions) {
  const std::string tensor = tensor_v2(storage("LongStorage", "0"));
  const auto tensors = read(dict(text("model") + dict(text("w") + tensor) + text("state") +
                                 dict(integer(3) + "](" + tensor + "N" + tensor + "e") + text("epoch") +
                                 integer(7) + text("lr") + "G12345678"));
  std::vector<std::string> names;
  for (const auto& [name, unused] : tensors) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("model.w", "state.3.0", "state.3.2"));
}

TEST(CheckpointPickle, AcceptsTheTypeTagsOfLibTorch) {
  const std::string tagged =
      global("torch.jit._pickle", "restore_type_tag") +
      tuple(dict(text("a") + tensor_v2(storage("HalfStorage", "0"))) + text("Dict[str, Tensor]")) + "R";
  EXPECT_EQ(read(tagged).at("a").dtype, "float16");
}

TEST(CheckpointPickle, StoresAndFindsMemoValues) {
  const std::string tensor = tensor_v2(storage("FloatStorage", "0"));
  EXPECT_EQ(read("}(" + text("a") + tensor + "q\x05" + text("b") + "h\x05u").size(), 2U);
  EXPECT_EQ(read("}(" + text("a") + tensor + "\x94" + text("b") + "j\0\0\0\0u"s).size(), 2U);
  EXPECT_THAT(refusal("h\x07"), HasSubstr("reads a memo entry that does not exist"));
}

TEST(CheckpointPickle, RunsNoCode) {
  EXPECT_THAT(refusal(global("os", "system") + tuple(text("rm -rf /")) + "R"),
              HasSubstr("has a 'os.system', which only code could create"));
  EXPECT_THAT(refusal(text("builtins") + text("eval") + "\x93" + tuple(text("1")) + "R"),
              HasSubstr("builtins.eval"));
  EXPECT_THAT(refusal(global("__main__", "Net") + ")\x81"), HasSubstr("__main__.Net"));
  EXPECT_THAT(refusal(global("os", "\x1b[2J") + ")R"), HasSubstr("\\u001b"));
  EXPECT_THAT(refusal("i"), HasSubstr("opcode 0x69"));
  EXPECT_THAT(refusal(text("a") + "}b"), HasSubstr("sets the state of an object that is not a dictionary"));
}

TEST(CheckpointPickle, RejectsTensorsThatAreNotPlain) {
  EXPECT_THAT(refusal(global("torch._utils", "_rebuild_qtensor") + ")R"), HasSubstr("quantised"));
  EXPECT_THAT(refusal(global("torch._utils", "_rebuild_sparse_tensor") + ")R"), HasSubstr("sparse"));
  EXPECT_THAT(refusal(tensor_v2(storage("QInt8Storage", "0"))), HasSubstr("class 'torch.QInt8Storage'"));
  const std::string conjugate = global("torch._utils", "_rebuild_tensor_v2") +
                                tuple(storage("ComplexFloatStorage", "0") + integer(0) + sizes(2, 3) +
                                      sizes(3, 1) + "\x89" + ordered_dict() + dict(text("conj") + "\x88")) +
                                "R";
  EXPECT_THAT(refusal(conjugate), HasSubstr("conjugate"));
}

TEST(CheckpointPickle, RejectsAnythingButADictionary) {
  EXPECT_THAT(refusal("N"), HasSubstr("something other than a dictionary of tensors"));
  EXPECT_THAT(refusal(tensor_v2(storage("FloatStorage", "0"))),
              HasSubstr("something other than a dictionary"));
}

TEST(CheckpointPickle, RejectsDuplicateNames) {
  const std::string tensor = tensor_v2(storage("FloatStorage", "0"));
  EXPECT_THAT(refusal(dict(text("a") + tensor + text("a") + tensor)), HasSubstr("two tensors are named 'a'"));
  EXPECT_THAT(refusal(dict(text("a.b") + tensor + text("a") + dict(text("b") + tensor))),
              HasSubstr("two tensors are named 'a.b'"));
}

TEST(CheckpointPickle, RejectsEveryTruncation) {
  const std::string whole = pickle(dict(text("a") + tensor_v2(storage("FloatStorage", "0"))));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(refusal_of_pickle(whole.substr(0, size)), "no error") << size;
}

TEST(CheckpointPickle, RejectsCyclesAndExponentialNesting) {
  EXPECT_THAT(refusal("}q\1" + text("a") + "h\1s"), HasSubstr("nested too deeply"));
  std::string pile = "}" + with_byte('q', 0);
  for (std::size_t level = 1; level < 60; ++level) {
    const std::string below = with_byte('h', level - 1);
    pile += dict(text("a") + below + text("b") + below) + with_byte('q', level);
  }
  EXPECT_THAT(refusal(pile), HasSubstr("nested too deeply"));
}

TEST(CheckpointPickle, RejectsStackUnderflow) {
  for (const char* value : {"s", "u", "t", "a", "e", "R", "Q", "b", "0", "\x85", "(0", "}N", "}(Nu"})
    EXPECT_NE(refusal(value), "no error") << value;
}

TEST(CheckpointPickle, RejectsTensorsWithWrongArguments) {
  const auto rebuilt = [](const std::string& arguments) {
    return dict(text("a") + global("torch._utils", "_rebuild_tensor_v2") + tuple(arguments) + "R");
  };
  const std::string one = storage("FloatStorage", "0");
  EXPECT_THAT(refusal(rebuilt(one + integer(0) + sizes(1, 2))),
              HasSubstr("in a way that torch.save does not"));
  EXPECT_THAT(refusal(rebuilt(one + integer(0) + sizes(1, 2) + tuple(integer(1)))),
              HasSubstr("2 sizes and 1 strides"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += integer(1);
  EXPECT_THAT(refusal(rebuilt(one + integer(0) + tuple(many) + tuple(many))),
              HasSubstr("too many dimensions"));
  EXPECT_THAT(refusal(rebuilt(one + "\x8a\x09"s + std::string(9, '\1') + sizes(1, 1) + sizes(1, 1))),
              HasSubstr("more than 64 bits"));
}

}  // namespace
}  // namespace offprof
