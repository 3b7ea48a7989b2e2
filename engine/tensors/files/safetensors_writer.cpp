#include "engine/tensors/files/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/tensors/files/safetensors.h"
#include "traces/base/check.h"
#include "traces/base/error.h"
#include "traces/base/printable.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

constexpr std::size_t kAlignment = 8;  ///< width of the widest numbers

void check_name(const std::string& name, std::set<std::string_view>& names) {
  const auto refuse = [&](const std::string& why) {
    throw input_error(fmt::format("a tensor cannot be named '{}': {}", printable(name), why));
  };
  if (!is_printable(name)) refuse("the name has characters that are not printable");
  if (name == kMetadataName) refuse("safetensors files use that name for metadata");
  if (!names.insert(name).second) refuse("another tensor already has that name");
}

Bytes size_in_file(const NewTensor& tensor) {
  const auto bytes = bytes_of(tensor.dtype, tensor.sizes);
  if (bytes && tensor.sizes.size() <= kMostDimensions) return *bytes;
  throw input_error(fmt::format("tensor '{}': {} of shape {} has more bytes than a file can have",
                                tensor.name, name_of(tensor.dtype), shape_text(tensor.sizes)));
}

void sort_for_alignment(std::vector<NewTensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NewTensor& a, const NewTensor& b) {
    return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
  });
}

/// Returns the header's length and the header, padded so that the tensors' bytes are aligned.
std::string padded(std::string text) {
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  if (text.size() > static_cast<std::size_t>(kMostHeaderBytes))
    throw input_error(
        fmt::format("the names and sizes of the tensors take {} bytes; a safetensors file has no room "
                    "for more than {}",
                    text.size(), kMostHeaderBytes),
        "Write several files.");
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<NewTensor> tensors,
                                     const std::map<std::string, std::string, std::less<>>& metadata)
    : tensors_(std::move(tensors)), file_(path) {
  sort_for_alignment(tensors_);
  std::string header = "{";
  const auto add = [&](std::string_view name, const nlohmann::ordered_json& value) {
    header += fmt::format("{}{}:{}", header.size() > 1 ? "," : "", dump_json(name, -1), dump_json(value, -1));
  };
  if (!metadata.empty()) add(kMetadataName, metadata);
  std::set<std::string_view> names;
  for (const NewTensor& tensor : tensors_) {
    check_name(tensor.name, names);
    const Bytes begin = left_;
    if (__builtin_add_overflow(left_, size_in_file(tensor), &left_))
      throw input_error(
          fmt::format("with tensor '{}' the file would have more bytes than a file can have", tensor.name));
    add(tensor.name,
        {{"dtype", name_of(tensor.dtype)}, {"shape", tensor.sizes}, {"data_offsets", {begin, left_}}});
  }
  file_.write(padded(header + "}"));
}

void SafetensorsWriter::write(std::string_view bytes) {
  left_ -= static_cast<Bytes>(bytes.size());
  OFFPROF_CHECK(left_ >= 0);
  file_.write(bytes);
}

void SafetensorsWriter::finish() {
  OFFPROF_CHECK(left_ == 0);
  file_.commit();
}

}  // namespace offprof
