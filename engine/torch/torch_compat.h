#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <type_traits>
#include <utility>

/// Differences between LibTorch 2.11 and 2.15 in what offprof uses. Each is found by a check of the feature,
/// not of the version.
namespace offprof {

/// Owning pointer to a node of the autograd graph: a std::shared_ptr before LibTorch 2.13, since then a
/// c10::intrusive_ptr (pytorch#181139).
using NodePointer = decltype(torch::autograd::Edge::function);

inline constexpr bool kNodesAreIntrusive =
    !std::is_same_v<NodePointer, std::shared_ptr<torch::autograd::Node>>;

/// Owning pointer to a node of type T, of the same kind as NodePointer.
template <typename T>
using NodePointerTo = std::conditional_t<kNodesAreIntrusive, c10::intrusive_ptr<T>, std::shared_ptr<T>>;
static_assert(std::is_same_v<NodePointer, NodePointerTo<torch::autograd::Node>>);

/// Creates a node of type T, whose constructor is accessible here.
template <typename T, typename... Arguments>
NodePointerTo<T> make_node(Arguments&&... arguments) {
  if constexpr (kNodesAreIntrusive) {
    return c10::make_intrusive<T>(std::forward<Arguments>(arguments)...);
  } else {
    // Autograd's deleter, which does not recurse through the graph. Only argument-dependent lookup may name
    // it, since later versions lack it.
    return {new T(std::forward<Arguments>(arguments)...), [](auto* node) { deleteNode(node); }};
  }
}

/// Has `observer(device, requested, allocated, total)` called when a CUDA allocator refuses memory before it
/// asks CUDA: setting throw_on_cudamalloc_oom, since LibTorch 2.12. All sizes are in bytes. Does nothing
/// before.
template <typename Allocator, typename Observer>
void attach_early_refusal_observer(Allocator& allocator, Observer observer) {
  if constexpr (requires { allocator.attachOomRejectionObserver(observer); })
    allocator.attachOomRejectionObserver(std::move(observer));
}

}  // namespace offprof
