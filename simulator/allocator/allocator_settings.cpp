#include "simulator/allocator/allocator_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <string_view>
#include <vector>

#include "traces/base/check.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr std::string_view kVariable = "PYTORCH_CUDA_ALLOC_CONF";
/// Sizes are multiples of kMinBlockBytes; this many of them exceed any memory.
constexpr Bytes kMostDivisions = Bytes{1} << 40;

Bytes power_of_two_floor(Bytes bytes) {
  return static_cast<Bytes>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
}

bool is_power_of_two(Bytes bytes) {
  return std::has_single_bit(static_cast<std::uint64_t>(bytes));
}

std::size_t log2_floor(Bytes bytes) {
  return std::bit_width(static_cast<std::uint64_t>(bytes)) - 1;
}

}  // namespace

Bytes AllocatorSettings::rounded(Bytes requested) const {
  if (requested < kMinBlockBytes) return kMinBlockBytes;
  const std::size_t log_of_mib = log2_floor(kMiB);
  const std::size_t log = std::max(log2_floor(requested), log_of_mib);
  const Bytes divisions = roundup_power2_divisions[std::min<std::size_t>(log - log_of_mib, 15)];
  if (divisions <= 1 || requested <= kMinBlockBytes * divisions) return round_up(requested, kMinBlockBytes);
  return round_up(requested, power_of_two_floor(requested) / divisions);
}

Bytes AllocatorSettings::segment_bytes(Bytes rounded_bytes) const {
  if (rounded_bytes <= kLargestSmallBytes) return kSmallSegmentBytes;
  if (rounded_bytes < kSmallestOwnSegmentBytes) return large_segment_bytes;
  return round_up(rounded_bytes, kSegmentRoundingBytes);
}

namespace {

// Reads the tokens of a settings text without white space: names, values and the signs between them.
class SettingsReader {
 public:
  explicit SettingsReader(const std::string& text) : text_(text) {
    for (const char c : text) {
      if (std::isspace(static_cast<unsigned char>(c))) continue;
      if (is_sign(c)) {
        tokens_.emplace_back(1, c);
        continue;
      }
      if (tokens_.empty() || is_sign(tokens_.back().front())) tokens_.emplace_back();
      tokens_.back() += c;
    }
  }

  bool at_end() const { return next_ == tokens_.size(); }
  bool at(std::string_view token) const { return !at_end() && tokens_[next_] == token; }

  std::string take() {
    if (at_end()) fail("it ends too early");
    return tokens_[next_++];
  }

  void expect(std::string_view token) {
    if (!at(token)) {
      fail(fmt::format("expected '{}' {}", token,
                       at_end() ? "at the end" : fmt::format("before '{}'", tokens_[next_])));
    }
    ++next_;
  }

  template <typename Number>
  Number number(const std::string& key) {
    const std::string token = take();
    Number value{};
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error != std::errc() || end != token.data() + token.size() || value < 0) {
      fail(fmt::format("{}: '{}' is not a number", key, token));
    }
    return value;
  }

  bool boolean(const std::string& key) {
    const std::string token = take();
    if (token != "True" && token != "False") {
      fail(fmt::format("{} must be True or False, not '{}'", key, token));
    }
    return token == "True";
  }

  // Skips a value of any form.
  void skip() {
    if (take() != "[") return;
    while (take() != "]") {
    }
  }

  [[noreturn]] void fail(const std::string& why, const std::string& hint = {}) const {
    throw input_error(fmt::format("{}='{}': {}", kVariable, text_, why), hint);
  }

 private:
  static bool is_sign(char c) { return c == ',' || c == ':' || c == '[' || c == ']'; }

  std::string text_;
  std::vector<std::string> tokens_;
  std::size_t next_ = 0;
};

Bytes read_mebibytes(SettingsReader& reader, const std::string& key, Bytes least) {
  const Bytes mebibytes = reader.number<Bytes>(key);
  if (mebibytes < least / kMiB) reader.fail(fmt::format("{} must be at least {}", key, least / kMiB));
  return std::min(mebibytes, kUnlimitedBytes / kMiB) * kMiB;
}

Bytes read_divisions(SettingsReader& reader, const std::string& key) {
  const Bytes divisions = reader.number<Bytes>(key);
  if (divisions > kMostDivisions)
    reader.fail(fmt::format("{}: {} is more than {}", key, divisions, kMostDivisions));
  if (divisions != 0 && !is_power_of_two(divisions)) {
    reader.fail(fmt::format("{}: {} is not a power of two", key, divisions));
  }
  return divisions;
}

// `[256:1,512:2,>:8]`: 1 for the interval that begins at 256 MiB and for all below it, 2 for the interval
// that begins at 512 MiB, 8 for all above the last one (`>`).
void read_divisions_by_size(SettingsReader& reader, const std::string& key, AllocatorSettings& settings) {
  auto& divisions = settings.roundup_power2_divisions;
  const std::size_t last_interval = divisions.size() - 1;
  std::size_t interval = 0;
  bool is_first = true;
  while (!reader.at("]")) {
    const bool is_rest = reader.at(">");
    if (is_rest) reader.expect(">");
    const Bytes boundary = is_rest ? 0 : reader.number<Bytes>(key);
    reader.expect(":");
    const Bytes value = read_divisions(reader, key);
    if (is_rest) {
      std::fill(divisions.begin() + std::min(interval + 1, divisions.size()), divisions.end(), value);
    } else {
      if (boundary == 0 || !is_power_of_two(boundary)) {
        reader.fail(fmt::format("{}: {} MiB is not a power of two", key, boundary));
      }
      interval = std::min(log2_floor(boundary), last_interval);
      if (is_first) std::fill_n(divisions.begin(), interval, value);
      divisions[interval] = value;
      is_first = false;
    }
    if (!reader.at("]")) reader.expect(",");
  }
  reader.expect("]");
}

void read_roundup_divisions(SettingsReader& reader, const std::string& key, AllocatorSettings& settings) {
  if (reader.at("[")) {
    reader.expect("[");
    read_divisions_by_size(reader, key, settings);
    return;
  }
  const Bytes divisions = read_divisions(reader, key);
  if (divisions == 0) reader.fail(fmt::format("{}: 0 is not a power of two", key));
  settings.roundup_power2_divisions.fill(divisions);
}

double read_fraction(SettingsReader& reader, const std::string& key, bool with_bounds) {
  const auto value = reader.number<double>(key);
  const bool is_inside = with_bounds ? value <= 1 : value > 0 && value < 1;
  if (!is_inside) reader.fail(fmt::format("{} must be between 0 and 1, not {}", key, value));
  return value;
}

void read_backend(SettingsReader& reader, const std::string& key) {
  const std::string backend = reader.take();
  if (backend == "cudaMallocAsync") {
    reader.fail("the memory of backend cudaMallocAsync is managed by CUDA and is not modelled",
                "use the native allocator: remove 'backend'");
  }
  if (backend != "native")
    reader.fail(fmt::format("{} must be native or cudaMallocAsync, not '{}'", key, backend));
}

// Since PyTorch 2.12.
void read_throw_on_oom(SettingsReader& reader, const std::string& key) {
  if (reader.boolean(key))
    reader.fail(key + " refuses memory by an estimate that is not modelled", "remove " + key);
}

// Settings of PyTorch 2.15.
bool reserves_addresses(const std::string& key) {
  return key == "expandable_segments_reserve" || key == "expandable_segments_reserve_by_class";
}

// These settings, of pinned memory, locks and graphs, do not affect device memory outside CUDA graphs.
bool is_without_effect(const std::string& key) {
  static constexpr std::string_view kKeys[] = {
      "pinned_use_background_threads", "pinned_use_cuda_host_register",     "pinned_use_hip_host_register",
      "pinned_num_register_threads",   "pinned_reserve_segment_size_mb",    "release_lock_on_cudamalloc",
      "release_lock_on_hipmalloc",     "graph_capture_record_stream_reuse",
      "pinned_free_catch_all",                                        // since PyTorch 2.12
      "pinned_max_round_threshold_mb", "pinned_max_cached_size_mb"};  // since PyTorch 2.13
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

void read_value(SettingsReader& reader, const std::string& key, AllocatorSettings& settings) {
  const Bytes large_segment = settings.large_segment_bytes;
  if (key == "large_segment_size_mb") {
    read_mebibytes(reader, key, kSmallestOwnSegmentBytes + kMiB);  // already read, before all others
  } else if (key == "max_split_size_mb") {
    settings.max_split_bytes = read_mebibytes(reader, key, large_segment);
  } else if (key == "max_non_split_rounding_mb") {
    settings.max_non_split_rounding_bytes = read_mebibytes(reader, key, large_segment);
  } else if (key == "garbage_collection_threshold") {
    settings.garbage_collection_threshold = read_fraction(reader, key, false);
  } else if (key == "roundup_power2_divisions") {
    read_roundup_divisions(reader, key, settings);
  } else if (key == "expandable_segments") {
    settings.expandable_segments = reader.boolean(key);
  } else if (key == "per_process_memory_fraction") {
    settings.per_process_memory_fraction = read_fraction(reader, key, true);
  } else if (key == "backend") {
    read_backend(reader, key);
  } else if (key == "throw_on_cudamalloc_oom") {
    read_throw_on_oom(reader, key);
  } else if (reserves_addresses(key)) {
    reader.fail("address ranges smaller than the device's memory are not modelled", "remove " + key);
  } else if (is_without_effect(key)) {
    reader.skip();
  } else {
    reader.fail(fmt::format("'{}' is not a setting of PyTorch 2.11 to 2.15", key));
  }
}

// The size of large segments limits other settings, so it is read first, at any position.
void read_large_segment(SettingsReader reader, AllocatorSettings& settings) {
  constexpr Bytes kLeast = kSmallestOwnSegmentBytes + kMiB;
  while (!reader.at_end()) {
    const std::string key = reader.take();
    if (key != "large_segment_size_mb") continue;
    reader.expect(":");
    settings.large_segment_bytes = read_mebibytes(reader, key, kLeast);
  }
  settings.max_non_split_rounding_bytes = settings.large_segment_bytes;
}

}  // namespace

AllocatorSettings parse_allocator_settings(const std::string& text) {
  AllocatorSettings settings{.text = text};
  SettingsReader reader(text);
  read_large_segment(reader, settings);
  while (!reader.at_end()) {
    const std::string key = reader.take();
    reader.expect(":");
    read_value(reader, key, settings);
    if (!reader.at_end()) reader.expect(",");
  }
  if (settings.expandable_segments && settings.large_segment_bytes % kGranuleBytes != 0) {
    reader.fail("CUDA maps the memory of expandable segments in granules of 2 MiB",
                "set large_segment_size_mb to an even number");
  }
  return settings;
}

}  // namespace offprof
