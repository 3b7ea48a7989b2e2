#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "profiler/cupti/step_tracing.h"
#include "profiler/plugin/script_io.h"
#include "profiler/recorder/code_location.h"
#include "profiler/script/script_session.h"
#include "traces/base/error.h"

namespace offprof {

/// Returns the process's device of that name; opens it in the first call, with `link_cap`: see make_device.
/// It is never destroyed, since saved tensors of a program may outlive every recording.
Device& device_of_process(const std::string& name, const Link& link_cap);

/// A request to record a program, from its JSON to the files with the results. Create it before the program
/// makes a tensor, since its device counts all memory from then on.
class ScriptRecording {
 public:
  /// `request` is the text of a ScriptRequest. Throws Error.
  ScriptRecording(const std::string& request, Progress progress, CodeLocator locate);
  ~ScriptRecording();
  ScriptRecording(const ScriptRecording&) = delete;
  ScriptRecording& operator=(const ScriptRecording&) = delete;

  ScriptSession& session() { return *session_; }
  const ScriptRequest& request() const { return request_; }
  Device& device() { return device_; }

  /// Forgets all recorded steps, for example because the program begins its steps elsewhere than it seemed.
  void restart();
  /// Ends the recording because the program failed. Returns true if it failed for lack of the device memory
  /// that the request allows, so that `write` reports that refusal.
  bool fail();

  /// Returns the outcome so far.
  ScriptOutcome outcome();
  /// Writes the trace, the command log and the outcome, each if its path is not empty. Throws Error, also
  /// (input) in a fork of the process that records: only one process may write them.
  void write();
  /// Writes an outcome that says why there is no trace.
  void write_error(const Error& error) const;

 private:
  void start();

  pid_t process_;  ///< that records
  ScriptRequest request_;
  Progress progress_;
  CodeLocator locate_;
  StepTracing tracing_;
  Device& device_;
  std::unique_ptr<ScriptSession> session_;
};

}  // namespace offprof
