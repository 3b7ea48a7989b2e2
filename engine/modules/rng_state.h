#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace offprof {

/// Where the default random number generators stand: the CPU's, and that of a device beside it. Takes no
/// memory of a device.
class RngState {
 public:
  /// As they stand now.
  explicit RngState(c10::Device device);

  /// They go on from here.
  void restore() const;
  void restore_cpu() const;  ///< the CPU's alone
  /// The numbers that its default generator would go on with from here; not for a CPU.
  at::Generator device_generator() const;
  c10::Device device() const { return device_; }

 private:
  c10::Device device_;
  at::Generator cpu_;  ///< a copy
  std::uint64_t device_seed_ = 0, device_offset_ = 0;
};

/// While it lives, random numbers are those that came after `state`; then they go on as if nothing had been
/// drawn.
class RngScope {
 public:
  explicit RngScope(const RngState& state) : before_(state.device()) { state.restore(); }
  ~RngScope() { before_.restore(); }
  RngScope(const RngScope&) = delete;
  RngScope& operator=(const RngScope&) = delete;

 private:
  RngState before_;
};

/// Likewise, and of a device's generator nobody is told: setting that has cuDNN begin the dropout of its
/// recurrent layers anew. So for its time another takes its place.
class DrawScope {
 public:
  explicit DrawScope(const RngState& state);
  ~DrawScope();
  DrawScope(const DrawScope&) = delete;
  DrawScope& operator=(const DrawScope&) = delete;

 private:
  RngState before_;
  at::Generator own_;  ///< the device's; undefined on a CPU
};

}  // namespace offprof
