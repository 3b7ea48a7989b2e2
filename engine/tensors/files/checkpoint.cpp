#include "engine/tensors/files/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <utility>

#include "engine/tensors/files/safetensors.h"
#include "engine/tensors/files/tensor_archive.h"
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

Checkpoint::Tensors read_safetensors(const std::shared_ptr<const ReadableFile>& file) {
  Checkpoint::Tensors tensors;
  const SafetensorsFile safetensors(file);
  for (const auto& [name, stored] : safetensors.tensors()) {
    const std::string_view dtype = torch_name(stored.dtype);
    tensors[name] = {std::string(dtype.empty() ? name_of(stored.dtype) : dtype),
                     stored.sizes,
                     {},
                     stored.bytes,
                     stored.offset,
                     file};
  }
  return tensors;
}

/// Returns no strides for a row-major tensor.
std::vector<std::int64_t> strides_of(const TensorArchive::Entry& entry) {
  std::int64_t expected = 1;
  for (std::size_t i = entry.sizes.size(); i > 0; --i) {
    if (entry.sizes[i - 1] != 1 && entry.strides[i - 1] != expected) return entry.strides;
    expected *= entry.sizes[i - 1];  // the archive has checked that the product fits
  }
  return {};
}

Checkpoint::Tensors read_archive(const std::shared_ptr<const ReadableFile>& file) {
  Checkpoint::Tensors tensors;
  const TensorArchive archive(file);
  for (const auto& [name, entry] : archive.tensors())
    tensors[name] = {entry.dtype, entry.sizes, strides_of(entry), entry.span, entry.offset, file};
  return tensors;
}

/// Reads a file of the type that its name or its first bytes indicate.
Checkpoint::Tensors read_tensor_file(const std::string& path, const Checkpoint::Open& open) {
  const std::shared_ptr<const ReadableFile> file = open(path);
  if (path.ends_with(kFileEnd)) return read_safetensors(file);
  std::array<char, 2> first{};
  file->read(0, first);
  const std::string_view beginning(first.data(), first.size());
  if (beginning == "PK") return read_archive(file);
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

Checkpoint::Checkpoint(const std::string& path, const Open& open) : path_(path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    add_folder(open);
  else if (path.ends_with(kIndexEnd))
    add_index(path, open);
  else
    add_file(path, open);
}

void Checkpoint::add_folder(const Open& open) {
  std::error_code error;
  const fs::path index = fs::path(path_) / kIndexName;
  if (fs::exists(index, error)) return add_index(index.string(), open);
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path_, error))
    if (entry.path().string().ends_with(kFileEnd)) files.push_back(entry.path().string());
  if (error) throw input_error(fmt::format("cannot read the folder '{}': {}", path_, error.message()));
  if (files.empty()) throw input_error(path_ + ": a folder without safetensors files", kWhatIsRead);
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) add_file(file, open);
}

void Checkpoint::add_index(const std::string& path, const Open& open) {
  const nlohmann::json json = parse_strict_document(*open_file(path), path);
  const JsonValue map = JsonValue(json, path + ": ").at("weight_map");
  if (!map.json().is_object()) map.fail("is not an object");
  std::map<fs::path, Tensors> opened;
  for (const auto& [name, unused] : map.json().items()) {
    const JsonValue entry = map.at(name);
    const fs::path file = beside(entry, path);
    auto known = opened.find(file);
    if (known == opened.end()) known = opened.emplace(file, read_tensor_file(file.string(), open)).first;
    const auto tensor = known->second.find(name);
    if (tensor == known->second.end())
      entry.fail(fmt::format("the file '{}' does not have this tensor", entry.as_string()),
                 "The index and the files belong to different checkpoints.");
    add(name, CheckpointTensor(tensor->second));
  }
}

void Checkpoint::add_file(const std::string& path, const Open& open) {
  for (auto& [name, tensor] : read_tensor_file(path, open)) add(name, std::move(tensor));
}

void Checkpoint::add(const std::string& name, CheckpointTensor&& tensor) {
  const std::string file = tensor.file->name();
  const auto [known, is_new] = tensors_.try_emplace(name, std::move(tensor));
  if (!is_new)
    throw input_error(fmt::format("{}: tensor '{}' is in '{}' and also in '{}'", path_, name,
                                  known->second.file->name(), file),
                      "A model.safetensors.index.json would select one of them.");
}

const CheckpointTensor& Checkpoint::at(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, unused] : tensors_) names.push_back(known);
  throw input_error(fmt::format("{}: no tensor is named '{}'; the file has {} tensors", path_,
                                printable(name), names.size()),
                    did_you_mean(name, names));
}

Bytes Checkpoint::bytes() const {
  Bytes bytes = 0;
  for (const auto& [name, tensor] : tensors_)
    if (__builtin_add_overflow(bytes, tensor.bytes, &bytes)) return std::numeric_limits<Bytes>::max();
  return bytes;
}

bool is_checkpoint_path(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) || path.ends_with(kIndexEnd) || path.ends_with(kFileEnd);
}

}  // namespace offprof
