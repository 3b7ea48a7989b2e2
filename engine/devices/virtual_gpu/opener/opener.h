#pragma once

#include <cstdint>

/// C interface of `liboffprof_virtual_gpu_opener.so`, for programs in other languages that can call C, such
/// as Python with ctypes. The library links neither LibTorch nor CUDA. All text is UTF-8, is owned by the
/// library, and is valid until the next call of the same function on the same thread.
extern "C" {

/// Opens the virtual GPU in this process: see open_virtual_gpu. LibTorch, if it is loaded later, uses it in
/// place of CUDA's libraries. `folder` contains the stand-in libraries. `profile` is the name of a built-in
/// profile or the path of a profile file. `memory_limit_bytes` limits what cudaMalloc gives out; 0: the
/// profile's memory. `devices` is the number of devices that the process sees, of which it may use one.
/// `cluster` is the name of a built-in cluster profile or the path of one; empty: the usual one of the card.
/// `balanced_experts` is not 0 if experts are assumed to get equally many tokens.
/// Returns 0, or a value of ErrorKind plus 2, which is the exit status of offprof: 2 if an argument is wrong,
/// 3 if a library is missing, broken, or loaded already. LibTorch, too, must not be loaded. Fails if the
/// virtual GPU is open already.
int offprof_virtual_gpu_open(const char* folder, const char* profile, std::int64_t memory_limit_bytes,
                             int devices, const char* cluster, int balanced_experts);

/// Describes the failure of the last offprof_virtual_gpu_open of this thread; empty if it succeeded.
const char* offprof_virtual_gpu_error();
/// Says what to do about that failure; may be empty.
const char* offprof_virtual_gpu_hint();

/// Returns the version of the LibTorch that the stand-in libraries were made for, such as `2.11.0`.
const char* offprof_virtual_gpu_torch_version();

/// Returns the state of the virtual GPU as a JSON object, or nullptr if it is not open:
///   profile           name of the profile
///   host_time_ns      virtual clock of the host, in nanoseconds: see VirtualGpu::host_time
///   launches          number of kernels launched
///   unwritten_calls   names of CUDA functions that were called but are not implemented
///   unknown_sizes     sizes that only NVIDIA's libraries know, since the last call: they count as 0
///   missing_device    largest number of a device that the program chose and that does not exist; or null
const char* offprof_virtual_gpu_state();

/// Returns the collectives that the process has called as a JSON object, or nullptr if the virtual GPU is not
/// open:
///   communicators           the most communicators of NCCL that existed at one time
///   exposed_collectives_ns  see CollectiveFigures
///   collectives             list of objects with name, calls, bytes, time_ns, least_time_ns and
///                           most_time_ns: see CollectiveCount
const char* offprof_virtual_gpu_collectives();

/// Returns the number of the device that the process uses: see VirtualGpu::device. 0 if the virtual GPU is
/// not open.
int offprof_virtual_gpu_device();

/// See VirtualGpu. Does nothing if the virtual GPU is not open.
void offprof_virtual_gpu_let_watchdogs_look();
/// See VirtualGpu::note_group. `key` has `key_bytes` bytes. Does nothing if the virtual GPU is not open.
void offprof_virtual_gpu_note_group(const char* key, std::int64_t key_bytes, int ranks, int nodes,
                                    const char* name);

/// See VirtualGpu::exchange_with_peers. `call_site` writes where the program is to `text`, at most `bytes`
/// bytes with a zero at their end. It may be called on any thread as long as the process lives. Does nothing
/// if the virtual GPU is not open.
void offprof_virtual_gpu_exchange_with_peers(const char* folder, int rank, int ranks, int patience_s,
                                             int signals, void (*call_site)(char* text, int bytes));
/// See VirtualGpu. These do nothing if the virtual GPU is not open.
void offprof_virtual_gpu_note_objects(int are_carried);
void offprof_virtual_gpu_stop_exchange();

}  // extern "C"
