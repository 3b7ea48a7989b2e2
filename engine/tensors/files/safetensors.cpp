#include "engine/tensors/files/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "traces/base/check.h"
#include "traces/base/error.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in files");

constexpr Bytes kLengthBytes = 8;
constexpr const char* kDamaged =
    "The file is damaged, or was not written by safetensors: copy, download or write it again.";

[[noreturn]] void refuse(const ReadableFile& file, const std::string& what, const char* hint = kDamaged) {
  throw input_error(fmt::format("{}: {}", file.name(), what), hint);
}

[[noreturn]] void refuse_tensor(const ReadableFile& file, std::string_view tensor, const std::string& what) {
  refuse(file, fmt::format("tensor '{}': {}", tensor, what));
}

Bytes header_bytes(const ReadableFile& file) {
  if (file.size() < kLengthBytes)
    refuse(file,
           fmt::format(
               "has {} bytes; a safetensors file begins with {} bytes that hold the length of its header",
               file.size(), kLengthBytes));
  std::uint64_t length = 0;
  read_all(file, 0, {reinterpret_cast<char*>(&length), sizeof length});
  if (length > std::uint64_t{kMostHeaderBytes})
    refuse(file,
           fmt::format("has a header of {} bytes, which is more than the format's limit of {}", length,
                       kMostHeaderBytes),
           "The file is damaged, or is not a safetensors file.");
  const auto bytes = static_cast<Bytes>(length);
  if (bytes > file.size() - kLengthBytes)
    refuse(file, fmt::format("is truncated: its header should have {} bytes, but the file has {}", bytes,
                             file.size()));
  return bytes;
}

nlohmann::json read_header(const ReadableFile& file, Bytes bytes, const std::string& name) {
  std::string text(static_cast<std::size_t>(bytes), '\0');
  read_all(file, kLengthBytes, text);
  if (!text.starts_with('{')) refuse(file, "its header does not begin with '{', which the format requires");
  TextSource source(text);
  return parse_strict_document(source, name);
}

TensorDtype dtype_from_json(const JsonValue& json) {
  const std::string& name = json.as_string();
  const auto dtype = dtype_named(name);
  if (!dtype) json.fail(fmt::format("'{}' is not a dtype that offprof supports", name), kDamaged);
  return *dtype;
}

/// Parses a tensor. Its offset still counts from the end of the header.
StoredTensor tensor_from_json(const ReadableFile& file, std::string_view name, const JsonValue& json) {
  json.allow_only({"dtype", "shape", "data_offsets"});
  StoredTensor tensor{.dtype = dtype_from_json(json.at("dtype")), .sizes = json.at("shape").as_integers()};
  if (tensor.sizes.size() > kMostDimensions)
    refuse_tensor(file, name,
                  fmt::format("has {} dimensions; the maximum is {}", tensor.sizes.size(), kMostDimensions));
  const auto offsets = json.at("data_offsets").as_integers();
  if (offsets.size() != 2)
    refuse_tensor(file, name, fmt::format("has {} data_offsets instead of two", offsets.size()));
  if (offsets[1] < offsets[0])
    refuse_tensor(file, name, fmt::format("ends at {}, before its begin at {}", offsets[1], offsets[0]));
  const auto bytes = bytes_of(tensor.dtype, tensor.sizes);
  const std::string type = fmt::format("{} of shape {}", name_of(tensor.dtype), shape_text(tensor.sizes));
  if (!bytes) refuse_tensor(file, name, fmt::format("{} has more bytes than a file can have", type));
  if (*bytes != offsets[1] - offsets[0])
    refuse_tensor(file, name,
                  fmt::format("{} takes {} bytes, but its data_offsets {} span {}", type, *bytes,
                              shape_text(offsets), offsets[1] - offsets[0]));
  tensor.offset = offsets[0];
  tensor.bytes = *bytes;
  return tensor;
}

/// Checks that each byte belongs to exactly one tensor: gaps may hide other data, and overlaps make tensors
/// share bytes.
void check_no_holes(const ReadableFile& file, const std::map<std::string, StoredTensor, std::less<>>& tensors,
                    Bytes data_bytes) {
  using Entry = std::pair<const std::string, StoredTensor>;
  std::vector<const Entry*> order;
  for (const Entry& entry : tensors) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->second.offset, a->second.bytes) < std::pair(b->second.offset, b->second.bytes);
  });
  Bytes end = 0;
  std::string before = "the header";
  for (const Entry* entry : order) {
    const auto& [name, tensor] = *entry;
    if (tensor.offset < end)
      refuse_tensor(file, name,
                    fmt::format("begins at {}, but {} ends at {}: they overlap", tensor.offset, before, end));
    if (tensor.offset > end)
      refuse_tensor(
          file, name,
          fmt::format("begins at {}, but {} ends at {}: there is a gap", tensor.offset, before, end));
    end += tensor.bytes;
    before = fmt::format("tensor '{}'", name);
    if (end > data_bytes)
      refuse_tensor(file, name,
                    fmt::format("ends at {}, but the file has only {} bytes of tensors: it is "
                                "truncated",
                                end, data_bytes));
  }
  if (end < data_bytes)
    refuse(file, fmt::format("its tensors have {} bytes, but {} follow the header: {} belong to no tensor",
                             end, data_bytes, data_bytes - end));
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::shared_ptr<const ReadableFile> file) : file_(std::move(file)) {
  const Bytes bytes = header_bytes(*file_);
  const std::string header_name = file_->name() + " (header)";
  const nlohmann::json header = read_header(*file_, bytes, header_name);
  const JsonValue object(header, file_->name() + ": ");
  for (const auto& [name, unused] : header.items()) {
    if (name != kMetadataName) {
      tensors_[name] = tensor_from_json(*file_, name, object.at(name));
      continue;
    }
    const JsonValue metadata = object.at(name);
    if (!metadata.json().is_object()) metadata.fail("is not an object", kDamaged);
    for (const auto& [key, text] : metadata.json().items()) metadata_[key] = metadata.at(key).as_string();
  }
  const Bytes data_begin = kLengthBytes + bytes;
  check_no_holes(*file_, tensors_, file_->size() - data_begin);
  for (auto& [name, tensor] : tensors_) tensor.offset += data_begin;
}

void SafetensorsFile::read(const StoredTensor& tensor, std::span<char> room, Bytes begin) const {
  OFFPROF_CHECK(begin >= 0 && begin <= tensor.bytes &&
                static_cast<Bytes>(room.size()) <= tensor.bytes - begin);
  read_all(*file_, tensor.offset + begin, room);
}

}  // namespace offprof
