#include "engine/tensors/tensor_store.h"

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <atomic>
#include <cstring>
#include <functional>

#include "engine/tensors/files/pickle_text.h"
#include "tests/support/folder_test.h"
#include "tests/support/random_tensors.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/torch_test.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using namespace pickle_text;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Counts the bytes read from the files that it opens.
struct CountedReads {
  std::atomic<Bytes> bytes = 0;

  Checkpoint::Open open() {
    class Counted final : public ReadableFile {
     public:
      Counted(std::shared_ptr<const ReadableFile> file, std::atomic<Bytes>& bytes)
          : file_(std::move(file)), bytes_(bytes) {}
      const std::string& name() const override { return file_->name(); }
      Bytes size() const override { return file_->size(); }
      std::size_t read(Bytes offset, std::span<char> room) const override {
        const std::size_t got = file_->read(offset, room);
        bytes_ += static_cast<Bytes>(got);
        return got;
      }

     private:
      std::shared_ptr<const ReadableFile> file_;
      std::atomic<Bytes>& bytes_;
    };
    return [this](const std::string& path) { return std::make_shared<Counted>(open_readable(path), bytes); };
  }
};

class TensorStoreTest : public FolderTest {
 protected:
  using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

  static std::string refusal(const std::string& path) {
    return message_of<Error>([&] { TensorStore store(path); });
  }

  std::string write_safetensors(const std::string& name, const Tensors& tensors) const {
    offprof::write_safetensors(in_folder(name),
                               std::map<std::string, at::Tensor>(tensors.begin(), tensors.end()));
    return in_folder(name);
  }

  /// Writes an archive like torch.save, with the given pickle and storages.
  std::string write_archive(const std::string& pickled, const std::vector<at::Tensor>& storages,
                            bool compress = false, const std::string& order = "little") const {
    caffe2::serialize::PyTorchStreamWriter writer(in_folder("m.pt"));
    writer.writeRecord("data.pkl", pickled.data(), pickled.size());
    writer.writeRecord("byteorder", order.data(), order.size());
    for (std::size_t i = 0; i < storages.size(); ++i)
      writer.writeRecord("data/" + std::to_string(i), storages[i].const_data_ptr(), storages[i].nbytes(),
                         compress);
    writer.writeEndOfFile();
    return in_folder("m.pt");
  }

  std::string write_dict(const Tensors& tensors) const {
    c10::Dict<std::string, at::Tensor> dict;
    for (const auto& [name, tensor] : tensors) dict.insert(name, tensor);
    const std::vector<char> bytes = torch::jit::pickle_save(dict);
    write_file(in_folder("m.pt"), {bytes.data(), bytes.size()});
    return in_folder("m.pt");
  }

  /// Expects that opening the file and loading `tensors` tensors of 1 MiB reads and holds few other bytes.
  static void expect_frugal(const std::string& path, int tensors) {
    constexpr Bytes kHead = 64 * kKiB;
    CountedReads reads;
    CountedAllocator& allocator = torch_allocator();
    allocator.reset_peak();
    const Bytes before = allocator.live_bytes();
    const TensorStore store(path, reads.open());
    EXPECT_LT(reads.bytes, kHead);
    EXPECT_EQ(store.tensors().size(), static_cast<std::size_t>(tensors));
    for (const auto& [name, info] : store.tensors()) {
      const Bytes read = reads.bytes;
      store.get(name);
      EXPECT_EQ(reads.bytes - read, info.bytes);
    }
    EXPECT_EQ(store.bytes(), tensors * kMiB);
    EXPECT_LT(allocator.peak_bytes() - before, kMiB + kHead);
  }

  static Tensors many() {
    Tensors tensors;
    for (int i = 0; i < 24; ++i) tensors.emplace_back(std::to_string(i), at::randn({256, 1024}));
    return tensors;
  }
};

TEST_F(TensorStoreTest, ReadsSafetensors) {
  const at::Tensor weight = at::randn({3, 4}), bias = at::randn({4}).to(at::kBFloat16);
  const TensorStore store(write_safetensors("m.safetensors", {{"weight", weight}, {"bias", bias}}));
  EXPECT_TRUE(same_bits(store.get("weight"), weight));
  EXPECT_TRUE(same_bits(store.get("bias"), bias));
  const CheckpointTensor& info = store.tensors().at("bias");
  EXPECT_EQ(info.dtype, "bfloat16");
  EXPECT_THAT(info.sizes, ElementsAre(4));
  EXPECT_EQ(info.bytes, 8);
  EXPECT_EQ(info.file->name(), in_folder("m.safetensors"));
  EXPECT_EQ(store.bytes(), 56);
}

TEST_F(TensorStoreTest, ReadsEachDtypeOfSafetensors) {
  Tensors tensors;
  for (const at::ScalarType dtype : plain_dtypes())
    if (file_dtype(dtype))
      tensors.emplace_back(std::string(dtype_name(dtype)), random_bits({3, 2}, dtype, 5));
  EXPECT_EQ(tensors.size(), 19U);
  const TensorStore store(write_safetensors("m.safetensors", tensors));
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(store.tensors().at(name).dtype, name);
    EXPECT_TRUE(same_bits(store.get(name), tensor)) << name;
  }
}

TEST_F(TensorStoreTest, Reads4BitNumbersInPairsAndRejects6BitNumbers) {
  offprof::write_safetensors(
      in_folder("m.safetensors"),
      std::vector<WrittenTensor>{{"four", TensorDtype::kF4, {3, 4}, std::string(6, 'x')},
                                 {"odd", TensorDtype::kF4, {4, 3}, std::string(6, 'x')},
                                 {"six", TensorDtype::kF6E2M3, {4}, std::string(3, 'x')}});
  const TensorStore store(in_folder("m.safetensors"));
  EXPECT_EQ(store.get("four").scalar_type(), at::kFloat4_e2m1fn_x2);
  EXPECT_THAT(store.get("four").sizes(), ElementsAre(3, 2));
  EXPECT_THAT(message_of<Error>([&] { store.get("odd"); }), HasSubstr("splits a byte"));
  EXPECT_THAT(message_of<Error>([&] { store.get("six"); }), HasSubstr("LibTorch has no dtype for F6_E2M3"));
  EXPECT_EQ(store.tensors().at("six").dtype, "F6_E2M3");
}

TEST_F(TensorStoreTest, ReadsAFolderByItsIndex) {
  write_safetensors("1.safetensors", {{"a", at::full({2}, 1)}, {"b", at::full({2}, 2)}});
  write_safetensors("2.safetensors", {{"b", at::full({2}, 3)}});
  write_file(in_folder("model.safetensors.index.json"),
             R"({"metadata":{"total_size":16},"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  for (const std::string& path : {path_.string(), in_folder("model.safetensors.index.json")}) {
    const TensorStore store(path);
    EXPECT_EQ(store.tensors().size(), 2U);
    EXPECT_TRUE(store.get("b").equal(at::full({2}, 3)));
  }
}

TEST_F(TensorStoreTest, ReadsAFolderWithoutAnIndexIfNamesDiffer) {
  write_safetensors("1.safetensors", {{"a", at::ones({2})}});
  write_safetensors("2.safetensors", {{"b", at::zeros({2})}});
  EXPECT_EQ(TensorStore(path_.string()).tensors().size(), 2U);
  write_safetensors("3.safetensors", {{"a", at::zeros({2})}});
  EXPECT_THAT(refusal(path_.string()),
              AllOf(HasSubstr("tensor 'a' is in"), HasSubstr("1.safetensors"), HasSubstr("3.safetensors")));
}

TEST_F(TensorStoreTest, RejectsIndicesWithInvalidFiles) {
  write_safetensors("1.safetensors", {{"a", at::ones({2})}});
  const auto index_refusal = [&](const std::string& map) {
    write_file(in_folder("model.safetensors.index.json"), R"({"weight_map":)" + map + "}");
    return refusal(path_.string());
  };
  for (const char* file : {"../1.safetensors", "/etc/passwd", "", "..", "a/b.safetensors"})
    EXPECT_THAT(index_refusal(R"({"a":")" + std::string(file) + R"("})"), HasSubstr("weight_map.a: '"));
  EXPECT_THAT(index_refusal(R"({"b":"1.safetensors"})"), HasSubstr("does not have this tensor"));
  EXPECT_THAT(index_refusal(R"({"a":"2.safetensors"})"), HasSubstr("cannot read"));
  EXPECT_THAT(index_refusal(R"({"a":"1.safetensors","a":"1.safetensors"})"), HasSubstr("'a' twice"));
  EXPECT_THAT(index_refusal("7"), HasSubstr("is not an object"));
}

TEST_F(TensorStoreTest, SuggestsTheNearestName) {
  const TensorStore store(write_safetensors("m.safetensors", {{"layer.weight", at::ones({2})}}));
  try {
    store.get("layer.weights");
    FAIL() << "a tensor that is not there";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no tensor is named 'layer.weights'; the file has 1"));
    EXPECT_THAT(error.hint(), HasSubstr("`layer.weight`"));
  }
}

TEST_F(TensorStoreTest, RejectsFilesThatAreNotCheckpoints) {
  EXPECT_THAT(refusal(in_folder("none.safetensors")), HasSubstr("No such file"));
  EXPECT_THAT(refusal(path_.string()), HasSubstr("a folder without safetensors"));
  write_file(in_folder("f"), "hello");
  EXPECT_THAT(refusal(in_folder("f")), HasSubstr("not a tensor file"));
  write_file(in_folder("f"), "");
  EXPECT_THAT(refusal(in_folder("f")), HasSubstr("not a tensor file"));
  write_file(in_folder("f"), "\x80\x02l.");
  EXPECT_THAT(refusal(in_folder("f")), HasSubstr("in the old format"));
  write_file(in_folder("f"), "PK\x03\x04 and nothing else");
  EXPECT_THAT(refusal(in_folder("f")), HasSubstr("damaged or truncated archive"));
}

TEST_F(TensorStoreTest, ReadsArchivesOfLibTorch) {
  const at::Tensor weight = at::randn({3, 4}), mask = at::randn({5}) > 0,
                   number = at::scalar_tensor(3.5, at::kHalf);
  const TensorStore store(
      write_dict({{"weight", weight}, {"mask", mask}, {"turned", weight.t()}, {"number", number}}));
  EXPECT_TRUE(same_bits(store.get("weight"), weight));
  EXPECT_TRUE(same_bits(store.get("mask"), mask));
  EXPECT_TRUE(same_bits(store.get("number"), number));
  EXPECT_TRUE(same_bits(store.get("turned"), weight.t()));
  EXPECT_EQ(store.get("turned").strides(), weight.t().strides());
}

TEST_F(TensorStoreTest, ReadsAStateDictInPythonsFormat) {
  const at::Tensor numbers = at::arange(7, at::kFloat);
  const std::string state_dict =
      ordered_dict() + "(" + text("fc.weight") + tensor_v2(storage("FloatStorage", "0")) + "u";
  const TensorStore store(write_archive(pickle(state_dict), {numbers}));
  EXPECT_TRUE(store.get("fc.weight").equal(numbers.slice(0, 1).view({2, 3})));
  EXPECT_EQ(store.tensors().at("fc.weight").bytes, 24);
}

TEST_F(TensorStoreTest, RejectsTensorsThatAreNotInTheArchive) {
  const std::string good = pickle(dict(text("a") + tensor_v2(storage("FloatStorage", "0"))));
  EXPECT_THAT(refusal(write_archive(good, {})), HasSubstr("a storage '0' that does not exist"));
  EXPECT_THAT(refusal(write_archive(good, {at::zeros({6})})),
              HasSubstr("tensor 'a': shape [2, 3], strides [3, 1] and offset 1 exceed its storage of 6"));
  EXPECT_THAT(refusal(write_archive(good, {at::zeros({700})}, true)),
              HasSubstr("record 'm/data/0' is compressed"));
  EXPECT_THAT(refusal(write_archive(good, {at::zeros({7})}, false, "big")), HasSubstr("not little-endian"));
  const std::string odd = with_byte('\x8a', 8).append(7, '\xff').append(1, '\x7f');
  const auto of_sizes = [&](const std::string& sizes, const std::string& strides) {
    return pickle(dict(text("a") + global("torch._utils", "_rebuild_tensor_v2") +
                       tuple(storage("FloatStorage", "0") + integer(0) + tuple(sizes) + tuple(strides)) +
                       "R"));
  };
  EXPECT_THAT(refusal(write_archive(of_sizes(odd, odd), {at::zeros({7})})), HasSubstr("exceed its storage"));
  EXPECT_THAT(refusal(write_archive(of_sizes(odd, integer(0)), {at::zeros({7})})),
              HasSubstr("exceed its storage"));
  EXPECT_THAT(refusal(write_archive(of_sizes(integer(2), "\x8a\x01\xff"), {at::zeros({7})})),
              HasSubstr("exceed its storage"));
}

TEST_F(TensorStoreTest, RejectsModulesAndOtherArchives) {
  EXPECT_THAT(refusal(write_archive(pickle(global("__main__", "Net") + ")\x81"), {})),
              HasSubstr("__main__.Net"));
  caffe2::serialize::PyTorchStreamWriter writer(in_folder("script.pt"));
  for (const char* record : {"data.pkl", "constants.pkl"}) writer.writeRecord(record, "x", 1);
  writer.writeEndOfFile();
  EXPECT_THAT(refusal(in_folder("script.pt")), HasSubstr("is a TorchScript module"));
}

TEST_F(TensorStoreTest, RejectsEveryTruncationOfAnArchive) {
  const std::string whole = read_file(write_dict({{"a", at::randn({8})}, {"b", at::randn({2})}}));
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    write_file(in_folder("m.pt"), whole.substr(0, size));
    EXPECT_NE(refusal(in_folder("m.pt")), "") << size;
  }
}

TEST_F(TensorStoreTest, LoadsOnlyTheRequestedTensorOfSafetensors) {
  expect_frugal(write_safetensors("m.safetensors", many()), 24);
}

TEST_F(TensorStoreTest, LoadsOnlyTheRequestedTensorOfAnArchive) {
  const std::string path = write_dict(many());
  expect_frugal(path, 24);
}

}  // namespace
}  // namespace offprof
