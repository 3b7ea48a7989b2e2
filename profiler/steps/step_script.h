#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "profiler/recording/step_result.h"
#include "profiler/steps/step_order.h"

namespace offprof {

/// Position of a script and of the scripts that it awaits: the step that they ask for, and its result.
struct ScriptPosition {
  const StepOrder* order = nullptr;  ///< nullptr: no step is asked for
  StepResult result;
  std::coroutine_handle<> waiting;  ///< the script that asked, resumed with the result
};

/// The value that a script returns.
template <typename T>
class ScriptValue {
 public:
  void return_value(T value) { value_.emplace(std::move(value)); }
  T take() { return std::move(*value_); }

 private:
  std::optional<T> value_;
};
template <>
class ScriptValue<void> {
 public:
  void return_void() {}
  void take() {}
};

/// A coroutine that asks for training steps one by one and returns a value in the end. Recording and
/// calibration are scripts, so that they do not depend on who runs the steps: a loop of ours, or the user's
/// own program.
///
///     StepScript<Nanoseconds> time_of_a_step() {
///       const StepOrder order{preset_policy("keep")};
///       const StepResult step = co_await order;
///       co_return step.step_time_ns;
///     }
///
/// A script may await other scripts. An order must be a variable of the script, which holds it until the step
/// has run. References that a script takes must outlive it.
template <typename T>
class [[nodiscard]] StepScript {
 public:
  class promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  StepScript(StepScript&& other) noexcept : script_(std::exchange(other.script_, {})) {}
  StepScript& operator=(StepScript&&) = delete;
  ~StepScript() {
    if (script_) script_.destroy();
  }

  /// Begins the script. Returns the first step that it asks for; nullptr if it needs none. Throws what the
  /// script throws.
  const StepOrder* begin() {
    script_.promise().position = &position();
    script_.resume();
    return order();
  }
  /// Continues the script with the result of the step that it asked for. Returns the next step; nullptr if it
  /// needs no more. Throws what the script throws.
  const StepOrder* go_on(StepResult result) {
    position().order = nullptr;
    position().result = std::move(result);
    position().waiting.resume();
    return order();
  }
  /// Returns the script's value, once it needs no more steps. Call it once.
  T take() { return script_.promise().take(); }

  // --- Awaiting this script in another ---

  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> outer) noexcept {
    script_.promise().position = outer.promise().position;
    script_.promise().outer = outer;
    return script_;
  }
  T await_resume() {
    rethrow_failure();
    return take();
  }

 private:
  explicit StepScript(Handle script) : script_(script) {}

  ScriptPosition& position() { return script_.promise().own_position; }
  const StepOrder* order() {
    rethrow_failure();
    return position().order;
  }
  void rethrow_failure() {
    if (script_.promise().failure) std::rethrow_exception(script_.promise().failure);
  }

  Handle script_;
};

template <typename T>
class StepScript<T>::promise_type : public ScriptValue<T> {
 public:
  StepScript get_return_object() { return StepScript(Handle::from_promise(*this)); }
  std::suspend_always initial_suspend() const noexcept { return {}; }

  /// Continues the script that awaits this one, if any.
  struct Return {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle ended) const noexcept { return ended.promise().outer; }
    void await_resume() const noexcept {}
  };
  Return final_suspend() const noexcept { return {}; }

  void unhandled_exception() { failure = std::current_exception(); }

  /// Stops all scripts until the step has run.
  struct Step {
    ScriptPosition& position;
    const StepOrder& order;

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> script) const noexcept {
      position.order = &order;
      position.waiting = script;
    }
    StepResult await_resume() const { return std::move(position.result); }
  };
  Step await_transform(const StepOrder& order) { return {*position, order}; }
  Step await_transform(StepOrder&&) = delete;  // the step would run when the order is gone
  template <typename U>
  StepScript<U>&& await_transform(StepScript<U>&& script) {
    return std::move(script);
  }

 private:
  friend class StepScript;
  template <typename U>
  friend class StepScript;

  ScriptPosition own_position;         ///< used if nobody awaits this script
  ScriptPosition* position = nullptr;  ///< of the outermost script
  std::coroutine_handle<> outer = std::noop_coroutine();
  std::exception_ptr failure;
};

/// Runs the script's steps by `run_step`, from a StepOrder to its StepResult, and returns its value.
template <typename T, typename RunStep>
T carry_out(StepScript<T> script, const RunStep& run_step) {
  const StepOrder* order = script.begin();
  while (order != nullptr) order = script.go_on(run_step(*order));
  return script.take();
}

}  // namespace offprof
