#include "cli/page/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/page/html.h"
#include "traces/base/units.h"

namespace offprof {
namespace {

/// Returns a relative change with its sign: `+12.3%`, `equal`.
std::string change_text(std::int64_t value, std::int64_t base) {
  if (value == base) return "equal";
  if (base == 0) return "new";
  return fmt::format("{:+.1f}%", 100.0 * (static_cast<double>(value) / static_cast<double>(base) - 1));
}

bool has_cache(const Metrics& metrics) {
  return metrics.device_reserved_peak_bytes.has_value();
}

Bytes peak_of(const Metrics& metrics) {
  return metrics.device_peak_bytes.value_or(0);
}

Nanoseconds time_of(const Metrics& metrics) {
  return metrics.step_time_ns.value_or(0);
}

std::string memory_words(const Metrics& metrics) {
  std::string requested = fmt::format("peaks at {} of device memory", format_bytes(peak_of(metrics)));
  if (!has_cache(metrics)) return requested;
  return fmt::format("{}, for which the allocator reserves {}", requested,
                     format_bytes(*metrics.device_reserved_peak_bytes));
}

std::string fit_words(const ReportRun& run) {
  if (!run.device_memory_bytes) return "";
  const Bytes left = *run.device_memory_bytes - device_bytes_taken(run.predicted);
  const std::string limit = format_bytes(*run.device_memory_bytes);
  if (left < 0)
    return fmt::format("It does not fit: that is {} more than the {} of the device.", format_bytes(-left),
                       limit);
  return fmt::format("It fits: {} of {} are left.", format_bytes(left), limit);
}

/// Says what helps a step that does not fit, if offloading activations does not.
std::string remedy_words(const ReportRun& run, const TuneResult* tuned) {
  if (!run.device_memory_bytes || device_bytes_taken(run.predicted) <= *run.device_memory_bytes) return "";
  if (run.record.resident_bytes > *run.device_memory_bytes)
    return fmt::format(
        "What is always there, such as weights and optimizer states, takes {} alone, so offloading "
        "activations "
        "cannot make it fit: offprof advise says what can.",
        format_bytes(run.record.resident_bytes));
  if (tuned == nullptr || tuned->chosen) return "";
  return "offprof advise tries checkpointing too.";
}

std::string place_words(const ReportRun& run) {
  const ProgramPlace& place = run.peak_place;
  if (place.phase.empty() && place.op.empty()) return "";
  if (place.op.empty()) return fmt::format(" The peak is in {}.", place.phase);
  return fmt::format(" The peak is in {}, at {}.", place.phase, place.op);
}

/// Says what `now` changes against `base`, in memory and in time.
std::string effect_words(const std::string& subject, const Metrics& now, const Metrics& base) {
  const std::string time =
      fmt::format("the step takes {} instead of {} ({})", format_duration(time_of(now)),
                  format_duration(time_of(base)), change_text(time_of(now), time_of(base)));
  if (peak_of(now) == peak_of(base)) {
    const bool changes_reserved =
        has_cache(now) && now.device_reserved_peak_bytes != base.device_reserved_peak_bytes;
    const std::string reserved = changes_reserved
                                     ? fmt::format("; the allocator reserves {} instead of {} ({})",
                                                   format_bytes(*now.device_reserved_peak_bytes),
                                                   format_bytes(base.device_reserved_peak_bytes.value_or(0)),
                                                   change_text(*now.device_reserved_peak_bytes,
                                                               base.device_reserved_peak_bytes.value_or(0)))
                                     : "";
    return fmt::format("{} does not move the peak{}; {}.", subject, reserved, time);
  }
  return fmt::format("{} takes the peak from {} to {} ({}); {}.", subject, format_bytes(peak_of(base)),
                     format_bytes(peak_of(now)), change_text(peak_of(now), peak_of(base)), time);
}

std::string policy_words(const ReportRun& run) {
  const Metrics& now = run.predicted;
  const bool moves = now.d2h_bytes.value_or(0) > 0 || peak_of(now) != peak_of(run.keep);
  if (!moves) return fmt::format("Nothing is offloaded; the step takes {}.", format_duration(time_of(now)));
  return effect_words("Against a step that offloads nothing, the policy", now, run.keep);
}

std::string tuned_words(const TuneResult& result, const Policy& recorded) {
  if (!result.chosen) return "No policy that the tuner tried fits into the device.";
  if (result.chosen->policy == recorded) return "The tuner recommends the policy of this step.";
  return effect_words(fmt::format("The tuner recommends: {}. It", describe(result.chosen->policy)),
                      result.chosen->predicted, result.keep.predicted);
}

/// Says in what else than the policy two runs differ.
std::string foreign_words(const ReportRun& first, const ReportRun& last) {
  const auto differ = [](const std::string& what, const std::string& a, const std::string& b) {
    return a == b ? "" : fmt::format("The {} differ: {} and {}. ", what, a, b);
  };
  std::string text =
      differ("models", first.trace->model.name, last.trace->model.name) +
      differ("devices", first.trace->environment.device_name, last.trace->environment.device_name);
  return text.empty() ? "" : text + "So changes are not those of a policy alone.";
}

/// A replay that differs from the recorded run must not be hidden.
std::string doubt_words(const ReportRun& run) {
  const auto& recorded = run.recorded.device_peak_bytes;
  if (!recorded || *recorded == peak_of(run.predicted)) return "";
  return fmt::format("The charts show the replayed step, whose peak is {} bytes; the trace has {} bytes.",
                     peak_of(run.predicted), *recorded);
}

std::string stall_remark(const Metrics& metrics) {
  const Nanoseconds exposed = metrics.exposed_ns.value_or(0);
  return time_of(metrics) == 0
             ? ""
             : fmt::format("{:.1f}% of the step",
                           100.0 * static_cast<double>(exposed) / static_cast<double>(time_of(metrics)));
}

std::string share_text(Bytes part, Bytes peak) {
  return fmt::format("{:.0f}% of the peak",
                     100.0 * static_cast<double>(part) / static_cast<double>(std::max<Bytes>(1, peak)));
}

/// Returns the figures of a run, compared with `base`, which is called `base_name`.
std::vector<VerdictFigure> figures_of(const ReportRun& run, const Metrics& base,
                                      const std::string& base_name) {
  const Metrics& now = run.predicted;
  const auto against = [&](std::int64_t value, std::int64_t of_base) {
    return value == of_base ? "as with " + base_name : change_text(value, of_base) + " against " + base_name;
  };
  std::vector<VerdictFigure> figures = {
      {"peak, requested", format_bytes(peak_of(now)), against(peak_of(now), peak_of(base))}};
  if (has_cache(now) && has_cache(base))
    figures.push_back({"peak, reserved", format_bytes(*now.device_reserved_peak_bytes),
                       against(*now.device_reserved_peak_bytes, *base.device_reserved_peak_bytes)});
  figures.push_back({"always there", format_bytes(run.record.resident_bytes),
                     share_text(run.record.resident_bytes, peak_of(now))});
  figures.push_back({"step time", format_duration(time_of(now)), against(time_of(now), time_of(base))});
  figures.push_back({"stalls of copies", format_duration(now.exposed_ns.value_or(0)), stall_remark(now)});
  figures.push_back({"host memory", format_bytes(now.host_peak_bytes.value_or(0)),
                     fmt::format("copied out {}, back {}", format_bytes(now.d2h_bytes.value_or(0)),
                                 format_bytes(now.h2d_bytes.value_or(0)))});
  return figures;
}

/// Judges a memory snapshot, which has neither a policy nor the step that it belongs to, against the first
/// one.
Verdict judge_snapshots(const ReportRun& first, const ReportRun& last) {
  const Bytes peak = peak_of(last.recorded), resident = last.record.resident_bytes;
  const bool is_alone = &first == &last;
  std::string sentence = is_alone ? "The memory snapshot " : last.label + ": the memory snapshot ";
  sentence += memory_words(last.recorded) + ".";
  if (!last.peak_place.op.empty()) sentence += fmt::format(" The peak is at {}.", last.peak_place.op);
  Verdict verdict{.sentences = {sentence}, .figures = {{"peak, requested", format_bytes(peak), ""}}};
  if (!is_alone)
    verdict.sentences.push_back(fmt::format("Against {}, the peak goes from {} to {} ({}).", first.label,
                                            format_bytes(peak_of(first.recorded)), format_bytes(peak),
                                            change_text(peak, peak_of(first.recorded))));
  if (has_cache(last.recorded))
    verdict.figures.push_back(
        {"peak, reserved", format_bytes(*last.recorded.device_reserved_peak_bytes), ""});
  verdict.figures.push_back({"older than the history", format_bytes(resident), share_text(resident, peak)});
  verdict.figures.push_back({"history", format_duration(time_of(last.predicted)), ""});
  return verdict;
}

}  // namespace

Verdict judge(const std::vector<ReportRun>& runs, const TuneResult* tuned) {
  const ReportRun& run = runs.back();
  if (run.trace->model.is_memory_snapshot()) return judge_snapshots(runs.front(), run);
  Verdict verdict;
  const auto say = [&](const std::string& sentence) {
    if (!sentence.empty()) verdict.sentences.push_back(sentence);
  };
  const std::string subject = runs.size() > 1 ? fmt::format("{}: the step", run.label) : "The step";
  const std::string fit = fit_words(run);
  say(fmt::format("{} {}. {}", subject, memory_words(run.predicted), fit));
  if (runs.size() > 1)
    say(effect_words(fmt::format("Against {}, {}", runs.front().label, run.label), run.predicted,
                     runs.front().predicted) +
        place_words(run));
  else
    say(policy_words(run) + place_words(run));
  if (runs.size() > 1) say(foreign_words(runs.front(), run));
  if (tuned != nullptr) say(tuned_words(*tuned, runs.front().trace->policy));
  say(remedy_words(run, tuned));
  for (const ReportRun& each : runs) say(doubt_words(each));
  verdict.figures = runs.size() > 1 ? figures_of(run, runs.front().predicted, runs.front().label)
                                    : figures_of(run, run.keep, "keep");
  return verdict;
}

std::string to_html(const Verdict& verdict) {
  std::string html = "<section class=\"verdict\" id=\"verdict\">\n";
  for (const std::string& sentence : verdict.sentences) html += "<p>" + escape_html(sentence) + "</p>\n";
  html += "<dl class=\"figures\">\n";
  for (const auto& [name, value, remark] : verdict.figures)
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd><dd>{}</dd></div>\n", escape_html(name),
                        escape_html(value), escape_html(remark));
  return html + "</dl>\n</section>";
}

}  // namespace offprof
