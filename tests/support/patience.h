#pragma once
/// Limit of a wait that only guards against hanging, in milliseconds. It is not a measurement: a busy machine takes
/// long.
///
///     QTRY_VERIFY_WITH_TIMEOUT(view.isReady(), kPatience);

namespace cleave::test {

inline constexpr int kPatience = 60'000;

}  // namespace cleave::test
