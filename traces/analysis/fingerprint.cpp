#include "traces/analysis/fingerprint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <vector>

#include "traces/base/error.h"
#include "traces/format/policy_io.h"

namespace offprof {
namespace {

// Offset basis and prime of the 64-bit FNV-1a hash (Fowler, Noll, Vo; RFC 9923).
constexpr std::uint64_t kFnvOffsetBasis = 0xcbf29ce484222325U;
constexpr std::uint64_t kFnvPrime = 0x100000001b3U;

std::uint64_t hash_on(std::uint64_t hash, std::string_view bytes) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * kFnvPrime;
  return hash;
}

std::string digits(std::uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace

std::string fingerprint(std::string_view bytes) {
  return digits(hash_on(kFnvOffsetBasis, bytes));
}

std::string fingerprint_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw input_error(path + ": cannot be read");
  constexpr std::size_t kPieceBytes = 1 << 20;
  std::vector<char> piece(kPieceBytes);
  std::uint64_t hash = kFnvOffsetBasis;
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0)
    hash = hash_on(hash, {piece.data(), static_cast<std::size_t>(file.gcount())});
  if (file.bad()) throw input_error(path + ": cannot be read");  // a folder can be opened but not read
  return digits(hash);
}

std::string fingerprint_of_run(const ModelInfo& model, const RunSettings& settings) {
  std::string text = model.fingerprint + '\n' + settings.loss + '\n' + settings.optimizer + '\n';
  for (const std::string& input : settings.inputs) text += input + '\n';
  for (const std::string& pattern : settings.checkpointed) text += "checkpoint " + pattern + '\n';
  if (settings.slices) text += describe(settings.slices) + '\n';
  return fingerprint(text);
}

std::string fingerprint_of_saved(std::span<const SavedTensor> saved) {
  std::uint64_t hash = kFnvOffsetBasis;
  for (const SavedTensor& tensor : saved)
    hash =
        hash_on(hash, fmt::format("{}[{}]\n", tensor.layout->dtype, fmt::join(tensor.layout->sizes, ", ")));
  return digits(hash);
}

PlannedStep planned_step_of(const Trace& trace) {
  return {fingerprint_of_run(trace.model, trace.settings), fingerprint_of_saved(trace.program.saved)};
}

PolicyFile policy_file_for(const Trace& trace, const Policy& policy, const Metrics& predicted) {
  return {.policy = policy,
          .predicted = predicted,
          .trace_fingerprint = fingerprint_of_run(trace.model, trace.settings),
          .parameters = trace.settings.parameters,
          .saved_fingerprint = fingerprint_of_saved(trace.program.saved)};
}

}  // namespace offprof
