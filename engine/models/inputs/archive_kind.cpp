#include "engine/models/inputs/archive_kind.h"

#include <algorithm>

#include "traces/base/error.h"

namespace offprof {

void check_zip_head(std::string_view head, const std::string& path) {
  if (head.starts_with("PK")) return;
  if (head.starts_with("\x80"))
    throw input_error(
        path + ": a pickle in the old format of torch.save: it has the parameters, but no code to run",
        kHowToExport);
  throw input_error(path + ": not a TorchScript archive (expected a zip file)", kHowToExport);
}

std::string what_archive_is(const std::vector<std::string>& records) {
  const auto has = [&](const std::string& part) {
    return std::ranges::any_of(
        records, [&](const std::string& record) { return record.find(part) != std::string::npos; });
  };
  if (has("model.json") || has("serialized_exported_program") || has("archive_format"))
    return "a .pt2 archive from torch.export, which LibTorch cannot train";
  if (has("data.pkl"))
    return "an eager checkpoint or state dict from torch.save: it has the parameters, but no code to run";
  return "a zip file that PyTorch did not write";
}

}  // namespace offprof
