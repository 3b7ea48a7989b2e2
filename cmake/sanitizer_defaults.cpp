// Default options of the sanitizers, in every program that is built with one, both in tests and by hand. Each
// sanitizer runtime calls its own function; the others are not called.

extern "C" {

/// Tests request more memory than there is, and expect a failure as from any allocator. Without
/// intercept_tls_get_addr=0, the leak checker confuses thread-local memory of a library that was opened later
/// with memory of an old glibc, because of its address, one time in 256. It then crashes or reports false
/// leaks. With the option it does not check that memory, so objects that LibTorch keeps per thread are listed
/// below.
const char* __asan_default_options() {
  return "allocator_may_return_null=1:detect_stack_use_after_return=1:intercept_tls_get_addr=0";
}

/// LibTorch's own leaks, one per line, by the innermost function that can be identified.
const char* __lsan_default_suppressions() {
  return
      // caffe2::serialize::PyTorchStreamReader's constructor throws for a file that is no archive, and leaks
      // the data that its zip reader has read until then.
      "leak:mz_zip_reader_init\n"
      "leak:mz_zip_reader_read_central_dir\n"
      // At exit PyTorch's caching allocator frees its lists, but not the blocks in them.
      "leak:c10::cuda::CUDACachingAllocator::Native::\n"
      "leak:at::CachingHostAllocatorImpl\n"
      // Convolution plans and handles are kept per thread.
      "leak:at::native::*BenchmarkCache\n"
      "leak:at::native::run_single_conv\n"
      "leak:at::native::*createCuDNNHandle\n"
      "leak:cudnn_frontend::\n";
}

const char* __lsan_default_options() {
  return "print_suppressions=0";
}

const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}

const char* __tsan_default_options() {
  return "allocator_may_return_null=1:halt_on_error=1";
}
}
