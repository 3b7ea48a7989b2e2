#include "cli/reports/advice/floor_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal/text_table.h"
#include "traces/base/whole_number.h"

namespace offprof {
namespace {

/// Ranks beyond which sharding is no advice.
constexpr Bytes kMostRanks = 4096;

/// Least share of the floor that a remedy is listed for.
constexpr double kLeastGain = 0.01;

/// Bytes for each parameter. States of 8 bits: two of one byte, and a scale of 4 bytes for 256 values each.
/// Frozen weights of 4 bits: half a byte, and a scale of 4 bytes for 64 values (QLoRA, Dettmers et al., 2023,
/// without the quantization of scales).
constexpr double kBfloat16States = 4, kEightBitStates = 2 + 2 * 4.0 / 256, kFourBitWeights = 0.5 + 4.0 / 64;

/// Returns what a way takes beside the floor, at least.
Bytes least_rest(const Advice& advice) {
  Bytes least = device_bytes_taken(advice.nothing.metrics());
  for (const Way& way : advice.ways)
    if (!way.configuration.parameters) least = std::min(least, device_bytes_taken(way.metrics()));
  return std::max<Bytes>(least - advice.floor.total(), 0);
}

class Remedies {
 public:
  Remedies(const FloorReport& report, const Trace& plain)
      : report_(report),
        floor_(report.floor),
        parameters_(static_cast<double>(plain.model.parameters)),
        is_script_(plain.settings.optimizer == kOfScript),
        is_sharded_(std::ranges::find(plain.program.storages, StorageRole::kGathered,
                                      &ProgramStorage::role) != plain.program.storages.end()) {}

  std::vector<FloorRemedy> list() {
    if (!floor_.is_optimizer_mixed && floor_.optimizer > 0) {
      add_states("optimizer states in bfloat16", kBfloat16States, "adamw:state=bf16");
      add_states("optimizer states of 8 bits", kEightBitStates, "adamw:state=8bit");
      add_states("no optimizer states (SGD)", 0, "sgd");
    }
    const Bytes others = floor_.inputs + floor_.workspaces;
    add("LoRA: frozen weights, few trained ones", floor_.parameters + others);
    add("LoRA with frozen weights of 4 bits", to_whole(kFourBitWeights * parameters_) + others);
    if (!is_sharded_) add_sharding(others);
    return std::move(remedies_);
  }

 private:
  void add(std::string name, Bytes bytes, std::string optimizer = {}) {
    if (bytes + to_whole(kLeastGain * static_cast<double>(floor_.total())) >= floor_.total()) return;
    remedies_.push_back(
        {std::move(name), bytes, bytes + report_.least_rest <= *report_.most, std::move(optimizer)});
  }

  void add_states(const std::string& name, double bytes_per_parameter, const std::string& optimizer) {
    const Bytes master = optimizer == "sgd" ? floor_.master_weights : 0;
    std::string with_master = optimizer;
    if (floor_.master_weights > 0 && master == 0) with_master += ",master=fp32";
    const Bytes saved = floor_.optimizer - to_whole(bytes_per_parameter * parameters_);
    if (saved > 0) add(name, floor_.total() - saved - master, is_script_ ? "" : with_master);
  }

  /// The fewest ranks among which fully sharded data parallelism divides the floor, with the batch on each.
  /// It also gathers the weights of a module at a time, which the program does not tell.
  void add_sharding(Bytes others) {
    const Bytes room = *report_.most - others - report_.least_rest;
    if (room <= 0) return;
    const Bytes ranks = (floor_.sharded() + room - 1) / room;
    if (ranks < 2 || ranks > kMostRanks) return;
    add(fmt::format("FSDP over {} ranks, each with this batch", ranks), others + floor_.sharded() / ranks);
  }

  const FloorReport& report_;
  const StepFloor& floor_;
  double parameters_;
  bool is_script_;
  bool is_sharded_;  ///< the program gathers parameters from other ranks
  std::vector<FloorRemedy> remedies_;
};

std::string parts_text(const StepFloor& floor) {
  std::string text = "weights " + format_bytes(floor.parameters);
  const auto add = [&](const char* name, Bytes bytes) {
    if (bytes > 0) text += fmt::format(", {} {}", name, format_bytes(bytes));
  };
  add("master weights", floor.master_weights);
  add("gradients", floor.gradients);
  add(floor.is_optimizer_mixed ? "optimizer states and workspaces" : "optimizer states", floor.optimizer);
  add("inputs and buffers", floor.inputs);
  add("workspaces and other tensors", floor.workspaces);
  return text;
}

std::string remedies_text(const FloorReport& report, const Page& page) {
  if (report.remedies.empty()) return "";
  TextTable table({{"", Align::kLeft}, {"by arithmetic", Align::kLeft}, {"without activations"}});
  for (const FloorRemedy& remedy : report.remedies)
    table.add_row({remedy.fits ? "" : "!", remedy.name, format_bytes(remedy.floor_bytes)});
  std::string text = "\n" + table.render(page);
  if (!std::ranges::all_of(report.remedies, &FloorRemedy::fits))
    text +=
        wrap(fmt::format("!: does not fit into {} with {} for the rest of a step, the least that was found",
                         format_bytes(*report.most), format_bytes(report.least_rest)),
             page.width, 0) +
        "\n";
  return text + "\n";
}

}  // namespace

FloorReport make_floor_report(const Advice& advice, const Trace& plain) {
  FloorReport report{advice.floor, advice.goal.most_memory, least_rest(advice)};
  const bool needs_remedy = !advice.recommended().is_within || report.exceeds_limit();
  if (report.most && needs_remedy) report.remedies = Remedies(report, plain).list();
  return report;
}

nlohmann::ordered_json to_json(const FloorReport& report) {
  const StepFloor& floor = report.floor;
  nlohmann::ordered_json json = {
      {"parameter_bytes", floor.parameters},  {"master_weight_bytes", floor.master_weights},
      {"gradient_bytes", floor.gradients},    {"optimizer_bytes", floor.optimizer},
      {"input_bytes", floor.inputs},          {"workspace_bytes", floor.workspaces},
      {"least_rest_bytes", report.least_rest}};
  auto& remedies = json["remedies"] = nlohmann::ordered_json::array();
  for (const FloorRemedy& remedy : report.remedies) {
    remedies.push_back({{"name", remedy.name}, {"floor_bytes", remedy.floor_bytes}, {"fits", remedy.fits}});
    if (!remedy.optimizer.empty()) remedies.back()["optimizer"] = remedy.optimizer;
  }
  return json;
}

std::string to_text(const FloorReport& report, const Page& page) {
  std::string text = fmt::format("Memory without activations: {} ({}).", format_bytes(report.floor.total()),
                                 parts_text(report.floor));
  if (report.exceeds_limit())
    text += fmt::format(" Activations are not the problem: this alone is {} more than {}.",
                        format_bytes(report.floor.total() - *report.most), format_bytes(*report.most));
  return wrap(text, page.width, 0) + "\n" + remedies_text(report, page);
}

}  // namespace offprof
