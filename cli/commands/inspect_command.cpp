#include "cli/commands/commands.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "cli/options/options.h"
#include "cli/reports/inspect_report.h"
#include "engine/tensors/files/checkpoint.h"
#include "engine/tensors/files/tensor_archive.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"
#include "traces/io/gzip.h"

namespace offprof {
namespace {

/// Returns the tensors of a checkpoint or of an archive, which are sorted by name.
template <typename Tensors, typename BytesOf>
std::vector<ListedTensor> listed(const Tensors& tensors, const BytesOf& bytes_of) {
  std::vector<ListedTensor> list;
  for (const auto& [name, tensor] : tensors)
    list.push_back({name, tensor.dtype, tensor.sizes, bytes_of(tensor)});
  return list;
}

InspectReport inspect_checkpoint(const std::string& path) {
  const Checkpoint checkpoint(path);
  return {path, InspectedKind::kCheckpoint,
          listed(checkpoint.tensors(), [](const CheckpointTensor& tensor) { return tensor.bytes; })};
}

InspectReport inspect_archive(std::shared_ptr<const ReadableFile> file, const std::string& path) {
  const TensorArchive archive(std::move(file), TensorArchive::Accepts::kModulesToo);
  return {path, archive.is_module() ? InspectedKind::kModel : InspectedKind::kCheckpoint,
          listed(archive.tensors(), [](const TensorArchive::Entry& entry) { return entry.span; })};
}

/// Describes a JSON file by its schema.
InspectReport inspect_json(const std::string& path) {
  JsonDocument document = parse_trace_document(*open_file(path), path);
  const std::string schema = schema_of(document.root);
  const std::string_view file_kind = schema_kind(schema);
  if (file_kind == schema_kind(kPolicySchema)) return inspect_policy(read_policy_file(path), path);
  for (const auto& [known, kind] : {std::pair{kBaselineSchema, InspectedKind::kBaseline},
                                    std::pair{kReportSchema, InspectedKind::kReport}})
    if (file_kind == schema_kind(known)) return {.file = path, .kind = kind, .summary = read_figures(path)};
  return inspect_trace(trace_from_document(document, path), path);
}

InspectReport inspect_file(const std::string& path) {
  if (is_checkpoint_path(path)) return inspect_checkpoint(path);
  std::shared_ptr<const ReadableFile> file = open_readable(path);
  std::array<char, 4> first{};
  const std::string_view head(first.data(), file->read(0, first));
  if (head.starts_with("PK")) return inspect_archive(std::move(file), path);
  if (head.starts_with('\x80')) return inspect_checkpoint(path);
  if (is_gzip(head) || head.find('{') != std::string_view::npos) return inspect_json(path);
  throw input_error(path + ": not a file that offprof can describe",
                    "Give a model (.pt), a checkpoint (.pt, .safetensors, or a folder of them), a trace, a "
                    "policy, a baseline or a report.");
}

class InspectCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    app.add_option(
           "FILE", path_,
           "Model (.pt), checkpoint (.pt, .safetensors, an index or a folder of them), trace, policy, "
           "baseline or report")
        ->required();
    add_output_option(app, output_, "File for the list (default -: standard output)");
  }

  ExitStatus run(Context& context) override {
    context.publish(inspect_file(path_), output_);
    return ExitStatus::kOk;
  }

 private:
  std::string path_;
  std::string output_ = "-";
};

}  // namespace

std::unique_ptr<Subcommand> make_inspect_command() {
  return std::make_unique<InspectCommand>();
}

}  // namespace offprof
