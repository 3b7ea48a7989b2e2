#include <string>
#include <utility>

#include "simulator/report/report_run.h"
#include "traces/analysis/fingerprint.h"
#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"

namespace offprof {
namespace {

using Json = nlohmann::ordered_json;

/// Column of times, each as its difference to the one before.
class TimeColumn {
 public:
  void add(Nanoseconds at) { deltas_.push_back(at - std::exchange(last_, at)); }
  Json take() { return std::move(deltas_); }

 private:
  Json deltas_ = Json::array();
  Nanoseconds last_ = 0;
};

/// Returns a column with one value for each element of `rows`.
template <typename Rows, typename Get>
Json column(const Rows& rows, const Get& get) {
  Json values = Json::array();
  for (const auto& row : rows) values.push_back(get(row));
  return values;
}

Json lives_to_json(const std::vector<MemoryLife>& lives) {
  return {{"bytes", column(lives, [](const MemoryLife& life) { return life.bytes; })},
          {"kind", column(lives, [](const MemoryLife& life) { return static_cast<int>(life.kind); })},
          {"tensor", column(lives, [](const MemoryLife& life) { return life.tensor; })},
          {"op", column(lives, [](const MemoryLife& life) { return life.origin.op; })},
          {"module", column(lives, [](const MemoryLife& life) { return life.origin.module; })},
          {"line", column(lives, [](const MemoryLife& life) { return life.origin.line; })}};
}

Json changes_to_json(const std::vector<MemoryChange>& changes) {
  TimeColumn times;
  for (const MemoryChange& change : changes) times.add(change.at_ns);
  return {{"at_ns", times.take()}, {"life", column(changes, [](const MemoryChange& change) {
                                      return change.is_begin ? -1 : change.life;
                                    })}};
}

Json reserved_to_json(const std::vector<ReservedMemory>& reserved) {
  TimeColumn times;
  for (const ReservedMemory& each : reserved) times.add(each.at_ns);
  return {{"at_ns", times.take()},
          {"bytes", column(reserved, [](const ReservedMemory& each) { return each.bytes; })}};
}

Json ops_to_json(const std::vector<RecordedOp>& ops) {
  TimeColumn begins;
  for (const RecordedOp& op : ops) begins.add(op.begin_ns);
  return {{"begin_ns", begins.take()},
          {"duration_ns", column(ops, [](const RecordedOp& op) { return op.end_ns - op.begin_ns; })},
          {"op", column(ops, [](const RecordedOp& op) { return op.origin.op; })},
          {"module", column(ops, [](const RecordedOp& op) { return op.origin.module; })},
          {"line", column(ops, [](const RecordedOp& op) { return op.origin.line; })},
          {"phase", column(ops, [](const RecordedOp& op) { return op.phase; })}};
}

Json copies_to_json(const std::vector<RecordedCopy>& copies) {
  TimeColumn begins;
  for (const RecordedCopy& copy : copies) begins.add(copy.begin_ns);
  return {
      {"begin_ns", begins.take()},
      {"duration_ns", column(copies, [](const RecordedCopy& copy) { return copy.end_ns - copy.begin_ns; })},
      {"track", column(copies, [](const RecordedCopy& copy) { return static_cast<int>(copy.track); })},
      {"bytes", column(copies, [](const RecordedCopy& copy) { return copy.bytes; })},
      {"tensor", column(copies, [](const RecordedCopy& copy) { return copy.tensor; })}};
}

Json stalls_to_json(const std::vector<Stall>& stalls) {
  TimeColumn begins;
  for (const Stall& stall : stalls) begins.add(stall.begin_ns);
  return {{"begin_ns", begins.take()},
          {"duration_ns", column(stalls, [](const Stall& stall) { return stall.duration_ns; })},
          {"reason", column(stalls, [](const Stall& stall) { return static_cast<int>(stall.reason); })},
          {"tensor", column(stalls, [](const Stall& stall) { return stall.tensor; })}};
}

Json phases_to_json(const std::vector<RecordedPhase>& phases) {
  return column(phases, [](const RecordedPhase& phase) {
    return Json{{"name", phase.name}, {"begin_ns", phase.begin_ns}, {"end_ns", phase.end_ns}};
  });
}

Json saved_to_json(const ReportRun& run) {
  const auto& tensors = run.program->saved;
  return {{"op", column(tensors, [](const SavedTensor& saved) { return saved.op; })},
          {"module", column(tensors, [](const SavedTensor& saved) { return saved.module; })},
          {"line", column(tensors, [](const SavedTensor& saved) { return saved.line; })},
          {"bytes", column(tensors, [](const SavedTensor& saved) { return saved.bytes; })},
          {"storage", column(tensors, [](const SavedTensor& saved) { return saved.storage; })},
          {"version", column(tensors, [](const SavedTensor& saved) { return saved.version; })},
          {"is_movable",
           column(tensors,
                  [](const SavedTensor& saved) { return saved.movability == Movability::kMovable ? 1 : 0; })},
          {"layout", column(run.saved, [](const SavedUse& use) { return use.layout; })},
          {"placement", column(run.saved, [](const SavedUse& use) { return use.placement; })},
          {"reason", column(run.record.placements,
                            [](const PackDecision& decision) { return to_string(decision.reason); })},
          {"on_device_ns", column(run.saved, [](const SavedUse& use) { return use.on_device_ns; })},
          {"stall_ns", column(run.saved, [](const SavedUse& use) { return use.stall_ns; })}};
}

Json resident_to_json(const ReportRun& run) {
  return {{"parameters", run.resident.parameters},
          {"buffers", run.resident.buffers},
          {"inputs", run.resident.inputs},
          {"other", run.resident.other}};
}

Json candidate_to_json(const Candidate& candidate, const Trace& trace) {
  return {{"description", describe(candidate.policy)},
          {"file", to_json(policy_file_for(trace, candidate.policy, candidate.predicted))}};
}

}  // namespace

Json to_columns(const ReportRun& run) {
  Json json = {{"label", run.label}, {"source", run.source}};
  json["recorded"] = metrics_to_json(run.recorded);
  json["predicted"] = metrics_to_json(run.predicted);
  json["keep"] = metrics_to_json(run.keep);
  if (run.trace->model.is_memory_snapshot()) json["is_memory_snapshot"] = true;
  if (run.device_memory_bytes) json["device_memory_bytes"] = *run.device_memory_bytes;
  json["peak_place"] = {{"phase", run.peak_place.phase}, {"op", run.peak_place.op}};
  json["always_live_bytes"] = run.record.resident_bytes;
  json["resident_bytes"] = resident_to_json(run);
  json["names"] = run.program->names;
  json["lives"] = lives_to_json(run.record.lives);
  json["changes"] = changes_to_json(run.record.changes);
  json["reserved"] = reserved_to_json(run.reserved);
  json["phases"] = phases_to_json(run.record.phases);
  json["ops"] = ops_to_json(run.record.ops);
  json["copies"] = copies_to_json(run.record.copies);
  json["stalls"] = stalls_to_json(run.record.stalls);
  json["saved"] = saved_to_json(run);
  return json;
}

Json to_columns(const TuneResult& result, const Trace& trace) {
  Json points = Json::array();
  for (const Candidate& candidate : result.frontier) {
    points.push_back(candidate_to_json(candidate, trace));
    if (result.chosen && candidate.policy == result.chosen->policy) points.back()["is_chosen"] = true;
  }
  return {{"keep", candidate_to_json(result.keep, trace)},
          {"trl", candidate_to_json(result.trl, trace)},
          {"points", std::move(points)}};
}

}  // namespace offprof
