#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/units.h"
#include "traces/model/link.h"
#include "traces/model/trace.h"

namespace offprof {

/// Quotes `word` for a shell if necessary.
std::string shell_word(std::string_view word);

/// Environment variables of a command, by name.
using Variables = std::map<std::string, std::string>;

/// The environment variable of the settings of PyTorch's caching allocator.
inline constexpr const char* kAllocatorVariable = "PYTORCH_CUDA_ALLOC_CONF";

/// Returns the variables for a run whose memory is that of the trace: the allocator's settings, if it had
/// any.
Variables variables_of_run(const Trace& trace);

/// Returns `NAME=VALUE offprof WORDS...`, which can be pasted into a shell. Words are quoted if necessary.
std::string command_line(const std::vector<std::string>& words, const Variables& variables = {});

/// Returns the line `Next: NAME=VALUE offprof WORDS...`.
std::string next_line(const std::vector<std::string>& words, const Variables& variables = {});

/// Returns the words with options added, before the `--` that separates the arguments of a script.
std::vector<std::string> with_options(std::vector<std::string> words,
                                      const std::vector<std::string>& options);

/// Returns the words of a command line without the program name, with its output redirected to another file.
/// `argv` begins with the program name.
std::vector<std::string> with_output(const std::vector<std::string>& argv, const std::string& output);

/// Returns the command line of a run like the trace's, but with the policy of a file: `run MODEL.pt ...
/// --policy FILE`. It repeats the words of the trace's `run`, except its policy and its outputs. If another
/// command wrote the trace, the words are derived from the trace's settings.
std::vector<std::string> run_with_policy(const Trace& trace, const std::string& policy_file);

/// Returns the words of a `run` without the options of a virtual GPU, on which nothing is trained, and
/// without
/// `-o`.
std::vector<std::string> without_virtual_gpu(const std::vector<std::string>& words);

/// Returns the words of a `run` without `--checkpoint` and the patterns after it.
std::vector<std::string> without_checkpointing(const std::vector<std::string>& words);

/// Return bytes and links in the format of options, without rounding: `4194304B`, `1000000000B/s,2000ns`.
std::string exact_bytes(Bytes bytes);
std::string exact_link(const Link& link);
std::string exact_disk(const DiskLink& disk);

}  // namespace offprof
