#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace offprof {

/// How a module becomes a TorchScript archive.
inline constexpr const char* kHowToExport =
    "export it from Python: torch.jit.trace(model, example_inputs).save('model.pt'), or "
    "torch.jit.script(model)";

/// Throws Error (input) unless a file that begins with `head`, its first four bytes or fewer, may be a zip.
/// `path` stands for the file in errors.
void check_zip_head(std::string_view head, const std::string& path);

/// What a zip that is no TorchScript archive is, by the names of its records.
std::string what_archive_is(const std::vector<std::string>& records);

}  // namespace offprof
