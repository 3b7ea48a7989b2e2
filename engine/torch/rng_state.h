#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace offprof {

/// State of the default random number generators: the CPU's, and that of a second device. Takes no device
/// memory.
class RngState {
 public:
  /// Copies the current state.
  explicit RngState(c10::Device device);

  /// Sets the generators to this state.
  void restore() const;
  void restore_cpu() const;  ///< the CPU's generator only
  /// Returns a copy of the device's default generator, set to this state; not for a CPU.
  at::Generator device_generator() const;
  c10::Device device() const { return device_; }

 private:
  c10::Device device_;
  at::Generator cpu_;  ///< a copy
  std::uint64_t device_seed_ = 0, device_offset_ = 0;
};

/// Sets the generators to `state` while this object lives, and restores them afterwards, as if nothing had
/// been drawn.
class RngScope {
 public:
  explicit RngScope(const RngState& state) : before_(state.device()) { state.restore(); }
  ~RngScope() { before_.restore(); }
  RngScope(const RngScope&) = delete;
  RngScope& operator=(const RngScope&) = delete;

 private:
  RngState before_;
};

/// Does the same as RngScope without setting the device's generator, because cuDNN restarts the dropout of
/// its recurrent layers when that is set. A second generator replaces it instead.
class DrawScope {
 public:
  explicit DrawScope(const RngState& state);
  ~DrawScope();
  DrawScope(const DrawScope&) = delete;
  DrawScope& operator=(const DrawScope&) = delete;

 private:
  RngState before_;
  at::Generator own_;  ///< the device's generator; undefined on a CPU
};

}  // namespace offprof
