#include "engine/tensors/tensor_store.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <utility>

#include "engine/tensors/files/safetensors.h"
#include "engine/tensors/tensor_archive.h"
#include "engine/tensors/torch_dtype.h"
#include "engine/torch/dtype_name.h"
#include "traces/base/check.h"
#include "traces/base/error.h"
#include "traces/base/printable.h"
#include "traces/base/suggestion.h"
#include "traces/io/file.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFileEnd = ".safetensors";
constexpr std::string_view kIndexEnd = ".index.json";
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kWhatIsRead =
    "Give a .safetensors file, a folder of them, a model.safetensors.index.json, or a .pt from "
    "torch.save.";

class SafetensorsTensors final : public TensorFile {
 public:
  explicit SafetensorsTensors(std::shared_ptr<const ReadableFile> file) : file_(std::move(file)) {
    for (const auto& [name, tensor] : file_.tensors()) {
      const auto dtype = scalar_type_of(tensor.dtype);
      infos_[name] = {std::string(dtype ? dtype_name(*dtype) : name_of(tensor.dtype)), tensor.sizes,
                      tensor.bytes, file_.name()};
    }
  }

  const std::map<std::string, TensorInfo, std::less<>>& tensors() const override { return infos_; }

  at::Tensor read(std::string_view name) const override {
    const StoredTensor& stored = file_.tensors().find(name)->second;
    const auto dtype = scalar_type_of(stored.dtype);
    if (!dtype) refuse(name, fmt::format("LibTorch has no dtype for {}", name_of(stored.dtype)));
    const at::Tensor tensor = at::empty(sizes_in_torch(name, stored), at::TensorOptions(*dtype));
    OFFPROF_CHECK(static_cast<Bytes>(tensor.nbytes()) == stored.bytes);
    file_.read(stored, {static_cast<char*>(tensor.mutable_data_ptr()), tensor.nbytes()});
    return tensor;
  }

 private:
  [[noreturn]] void refuse(std::string_view name, const std::string& why) const {
    throw input_error(fmt::format("{}: tensor '{}' cannot be loaded: {}", file_.name(), name, why));
  }

  /// Converts the sizes: LibTorch counts pairs of 4-bit numbers.
  std::vector<std::int64_t> sizes_in_torch(std::string_view name, const StoredTensor& stored) const {
    std::vector<std::int64_t> sizes = stored.sizes;
    if (stored.dtype != TensorDtype::kF4) return sizes;
    if (sizes.empty() || sizes.back() % 2 != 0)
      refuse(name, fmt::format("shape {} of F4 splits a byte", shape_text(sizes)));
    sizes.back() /= 2;
    return sizes;
  }

  SafetensorsFile file_;
  std::map<std::string, TensorInfo, std::less<>> infos_;
};

class ArchiveTensors final : public TensorFile {
 public:
  explicit ArchiveTensors(const std::shared_ptr<const ReadableFile>& file) : archive_(file) {
    for (const auto& [name, entry] : archive_.tensors())
      infos_[name] = {std::string(dtype_name(entry.dtype)), entry.sizes, entry.span, file->name()};
  }

  const std::map<std::string, TensorInfo, std::less<>>& tensors() const override { return infos_; }
  at::Tensor read(std::string_view name) const override {
    return archive_.read(archive_.tensors().find(name)->second);
  }

 private:
  TensorArchive archive_;
  std::map<std::string, TensorInfo, std::less<>> infos_;
};

/// Opens a file by the type that its name or its first bytes indicate.
std::shared_ptr<const TensorFile> open_tensor_file(const std::string& path, const TensorStore::Open& open) {
  auto file = open(path);
  if (path.ends_with(kFileEnd)) return std::make_shared<SafetensorsTensors>(std::move(file));
  std::array<char, 2> first{};
  file->read(0, first);
  const std::string_view beginning(first.data(), first.size());
  if (beginning == "PK") return std::make_shared<ArchiveTensors>(std::move(file));
  if (beginning[0] == '\x80')
    throw input_error(path + ": a pickle in the old format of torch.save, which can only be read as a whole",
                      "Load it, and save it again with PyTorch 1.6 or later, or as safetensors.");
  throw input_error(path + ": not a tensor file that offprof supports", kWhatIsRead);
}

/// Returns the path of a file of an index, which must be in the index's folder.
fs::path beside(const JsonValue& file, const fs::path& index) {
  const fs::path name = file.as_string();
  if (name.has_parent_path() || !name.has_filename() || name == "." || name == "..")
    file.fail(fmt::format("'{}' is not the name of a file in the same folder", name.string()));
  return index.parent_path() / name;
}

}  // namespace

TensorStore::TensorStore(const std::string& path, const Open& open) : path_(path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    add_folder(path, open);
  else if (path.ends_with(kIndexEnd))
    add_index(path, open);
  else
    add_file(open_tensor_file(path, open));
}

void TensorStore::add_folder(const std::string& path, const Open& open) {
  std::error_code error;
  const fs::path index = fs::path(path) / kIndexName;
  if (fs::exists(index, error)) return add_index(index.string(), open);
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.path().string().ends_with(kFileEnd)) files.push_back(entry.path().string());
  if (error) throw input_error(fmt::format("cannot read the folder '{}': {}", path, error.message()));
  if (files.empty()) throw input_error(path + ": a folder without safetensors files", kWhatIsRead);
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) add_file(open_tensor_file(file, open));
}

void TensorStore::add_index(const std::string& path, const Open& open) {
  const nlohmann::json json = parse_strict_document(*open_file(path), path);
  const JsonValue map = JsonValue(json, path + ": ").at("weight_map");
  if (!map.json().is_object()) map.fail("is not an object");
  std::map<fs::path, std::shared_ptr<const TensorFile>> opened;
  for (const auto& [name, unused] : map.json().items()) {
    const JsonValue entry = map.at(name);
    auto& file = opened[beside(entry, path)];
    if (file == nullptr) file = open_tensor_file(beside(entry, path).string(), open);
    if (!file->tensors().contains(name))
      entry.fail(fmt::format("the file '{}' does not have this tensor", entry.as_string()),
                 "The index and the files belong to different checkpoints.");
    add(name, file);
  }
}

void TensorStore::add_file(std::shared_ptr<const TensorFile> file) {
  for (const auto& [name, unused] : file->tensors()) add(name, file);
}

void TensorStore::add(const std::string& name, const std::shared_ptr<const TensorFile>& file) {
  const TensorInfo& info = file->tensors().find(name)->second;
  if (!files_.emplace(name, file).second)
    throw input_error(fmt::format("{}: tensor '{}' is in '{}' and also in '{}'", path_, name,
                                  tensors_.at(name).file, info.file),
                      "A model.safetensors.index.json would select one of them.");
  tensors_[name] = info;
}

Bytes TensorStore::bytes() const {
  Bytes bytes = 0;
  for (const auto& [name, info] : tensors_)
    if (__builtin_add_overflow(bytes, info.bytes, &bytes)) return std::numeric_limits<Bytes>::max();
  return bytes;
}

at::Tensor TensorStore::get(std::string_view name, at::Device device) const {
  const auto found = files_.find(name);
  if (found != files_.end()) return found->second->read(name).to(device);
  std::vector<std::string> names;
  for (const auto& [known, unused] : files_) names.push_back(known);
  throw input_error(fmt::format("{}: no tensor is named '{}'; the file has {} tensors", path_,
                                printable(name), names.size()),
                    did_you_mean(name, names));
}

}  // namespace offprof
