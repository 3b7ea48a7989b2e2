#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/link.h"
#include "traces/trace.h"
#include "traces/units.h"

namespace offprof {

/// `word` as a shell reads it back: quoted where it has to be.
std::string shell_word(std::string_view word);

/// `Next: offprof WORDS...`, a line to paste into a shell. Words are quoted where they have to be.
std::string next_line(const std::vector<std::string>& words);

/// The words of a command line, its program left out, with its output in another file.
/// `argv`: program name first.
std::vector<std::string> with_output(const std::vector<std::string>& argv, const std::string& output);

/// The command line of a run like the trace's, under the policy of a file: `run MODEL.pt ... --policy FILE`.
/// It repeats what the trace's `run` was told, its policy and its outputs left out. Of a trace that another
/// command made it has what the trace's settings say.
std::vector<std::string> run_with_policy(const Trace& trace, const std::string& policy_file);

/// Bytes and links as options read them, exactly: `4194304B`, `1000000000B/s,2000ns`.
std::string exact_bytes(Bytes bytes);
std::string exact_link(const Link& link);
std::string exact_disk(const DiskLink& disk);

}  // namespace offprof
