#pragma once
/// LibTorch's exceptions become Results here, once: one sentence, without stack traces.
#include "base/result.h"

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string>
#include <type_traits>

namespace cleave::torch_exec {

/// The message of an exception of LibTorch's, Gloo's or the standard library's, cut to its first paragraph.
std::string messageOf(const std::exception& exception);

/// Runs `body` (which returns a Result) and turns whatever it throws into `code` with the message alone. Running out of
/// memory and a device that fails are Environment always: the machine's fault, not that of a plan, an input or a peer. (LibTorch's CPU allocator
/// throws a type of its own only while an AllocationCounter counts; memory_probe.h.)
template <class Body>
std::invoke_result_t<Body> translated(Body&& body, ErrorCode code = ErrorCode::Environment) {
  try {
    return body();
  } catch (const c10::OutOfMemoryError& exception) {
    return tl::unexpected<Error>(Error{ErrorCode::Environment, messageOf(exception)});
  } catch (const c10::AcceleratorError& exception) {
    return tl::unexpected<Error>(Error{ErrorCode::Environment, messageOf(exception)});
  } catch (const std::bad_alloc&) {
    return tl::unexpected<Error>(Error{ErrorCode::Environment, "there is not enough memory."});
  } catch (const std::exception& exception) {
    return tl::unexpected<Error>(Error{code, messageOf(exception)});
  }
}

}  // namespace cleave::torch_exec
