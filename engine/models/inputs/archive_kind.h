#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace offprof {

/// Instructions, for error messages, to export a module as a TorchScript archive.
inline constexpr const char* kHowToExport =
    "export it from Python: torch.jit.trace(model, example_inputs).save('model.pt'), or "
    "torch.jit.script(model)";

/// Throws Error (input) unless a file that begins with `head` (its first four bytes or fewer) may be a zip.
/// `path` names the file in errors.
void check_zip_head(std::string_view head, const std::string& path);

/// Describes a zip that is not a TorchScript archive, judged by the names of its records.
std::string what_archive_is(const std::vector<std::string>& records);

}  // namespace offprof
